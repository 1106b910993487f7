"""What a fleet file must not say of monitoring."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

_PINNED = "grafana/grafana@sha256:" + "a" * 64

REFUSALS = (
    refusal(
        "exporters open to everybody",
        """\
        fleet: office
        defaults:
          monitoring:
            exporters: {listen: 0.0.0.0}
        hosts: {spark-1: {}}
        """,
        (4, "defaults.monitoring.exporters.scraped_from", "listens on 0.0.0.0, where others can reach it; name who"),
    ),
    refusal(
        "who asks is no network",
        """\
        fleet: office
        defaults: {monitoring: {exporters: {listen: 0.0.0.0, scraped_from: [10.0.0.5/24]}}}
        hosts: {spark-1: {}}
        """,
        (2, "defaults.monitoring.exporters.scraped_from[0]", "write 10.0.0.5 or 10.0.0.0/24"),
    ),
    refusal(
        "exporters that Prometheus on another host can not reach",
        """\
        fleet: office
        defaults:
          monitoring: {exporters: {}}
        hosts:
          spark-1: {address: 10.0.0.11, settings: {monitoring: {prometheus: {}}}}
          spark-2: {address: 10.0.0.12}
        """,
        (6, "hosts.spark-2.settings.monitoring.exporters.listen", "loopback, where spark-1 can not reach them"),
    ),
    refusal(
        "exporters that the site's Prometheus can not reach",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              monitoring: {existing_prometheus: true, exporters: {}}
        """,
        (5, "hosts.spark-1.settings.monitoring.exporters.listen", "where the site's Prometheus can not reach them"),
    ),
    refusal(
        "nothing for the site's Prometheus",
        """\
        fleet: office
        hosts:
          spark-1:
            settings: {monitoring: {existing_prometheus: true}}
        """,
        (4, "hosts.spark-1.settings.monitoring.existing_prometheus", "finds nothing on this host"),
    ),
    refusal(
        "two Prometheus",
        """\
        fleet: office
        hosts:
          spark-1:
            settings: {monitoring: {existing_prometheus: true, exporters: {}, prometheus: {}}}
        """,
        (4, "hosts.spark-1.settings.monitoring.prometheus", "either the site's Prometheus or one of ours"),
    ),
    refusal(
        "a port that a service has",
        """\
        fleet: office
        defaults:
          services: {gpt-oss: {engine: vllm, model: gpt-oss-120b, port: 9090}}
          monitoring:
            prometheus:
              port: 9090
        hosts: {spark-1: {}}
        """,
        (6, "defaults.monitoring.prometheus.port", "prometheus and service gpt-oss both want port 9090"),
    ),
    refusal(
        "Grafana without Prometheus, by a tag, with a secret that is none",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              monitoring:
                grafana: {image: 'grafana/grafana:latest', admin_password: hunter2}
        """,
        (6, "hosts.spark-1.settings.monitoring.grafana.admin_password", "no name of a secret of this fleet"),
        (6, "hosts.spark-1.settings.monitoring.grafana.image", "write an image with its digest, as in docker.io/"),
    ),
    refusal(
        "Grafana alone",
        f"""\
        fleet: office
        secrets: {{grafana: {{command: [echo, x]}}}}
        hosts:
          spark-1:
            settings:
              monitoring:
                grafana: {{image: '{_PINNED}', admin_password: grafana}}
        """,
        (7, "hosts.spark-1.settings.monitoring.grafana", "add prometheus on this host"),
    ),
    refusal(
        "an open Prometheus that is to tell a name",
        """\
        fleet: office
        hosts:
          spark-1:
            settings:
              monitoring:
                prometheus:
                  listen: 10.0.0.11
                  scraped_from: [10.0.0.0/24]
                  alertmanagers: ['http://alerts.example:9093']
        """,
        (9, "hosts.spark-1.settings.monitoring.prometheus.alertmanagers[0]", "only a name is known"),
    ),
    refusal(
        "a retention without a unit",
        """\
        fleet: office
        defaults: {monitoring: {prometheus: {retention: 30}}}
        hosts: {spark-1: {}}
        """,
        (2, "defaults.monitoring.prometheus.retention", "write a whole number with h, d, w or y, as in 30d"),
    ),
)
