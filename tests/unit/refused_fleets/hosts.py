"""What a fleet file must not say of hosts, and of the file's shape."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

REFUSALS = (
    refusal(
        "a host's name that means a group",
        """\
        fleet: office
        hosts: {all: {address: 10.0.0.11}}
        """,
        (2, "hosts.all", "the name all is taken: `--limit` and `LIMIT` mean a group by it; choose another name"),
    ),
    refusal(
        "unknown key at the top",
        """\
        fleet: office
        host:
          spark-1: {}
        """,
        (1, "hosts", "the fleet is empty; add a host"),
        (2, "host", "unknown key; did you mean hosts?"),
    ),
    refusal(
        "unknown key of a host",
        """\
        fleet: office
        hosts:
          spark-1:
            adress: 10.0.0.11
        """,
        (4, "hosts.spark-1.adress", "unknown key; did you mean address?"),
    ),
    refusal(
        "four numbers that are no host's address",
        """\
        fleet: office
        hosts:
          spark-1: {address: 10.0.0.311}
          spark-2: {address: 0.0.0.0}
        """,
        (3, "hosts.spark-1.address", "not an address that a host can have; write it as 10.0.0.11, or a name"),
        (4, "hosts.spark-2.address", "not an address that a host can have"),
    ),
    refusal(
        "one host's address where all are to listen",
        """\
        fleet: office
        defaults:
          services: {gpt-oss: {engine: vllm, model: gpt-oss-120b, listen: 10.0.0.11}}
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2:
            address: 10.0.0.12
            settings: {monitoring: {exporters: {listen: 10.0.0.11, scraped_from: [10.0.0.11]}}}
        """,
        (3, "defaults.services.gpt-oss.listen", "10.0.0.11, at which spark-2 is to listen, is spark-1's address"),
        (8, "hosts.spark-2.settings.monitoring.exporters.listen", "is spark-1's address; write 0.0.0.0, or"),
    ),
    refusal(
        "duplicate host by name",
        """\
        fleet: office
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.12}
          spark-1: {address: 10.0.0.13}
        """,
        (5, "hosts.spark-1", "duplicate host: it stands on line 3 too; keep one of them"),
    ),
    refusal(
        "duplicate host by address and port",
        """\
        fleet: office
        ssh: {port: 2222}
        hosts:
          spark-1: {address: 10.0.0.11}
          spark-2: {address: 10.0.0.11, ssh: {port: 22}}
          spark-3: {address: 10.0.0.11, ssh: {port: 2222}}
        """,
        (6, "hosts.spark-3", "duplicate host: 10.0.0.11 port 2222 is spark-1's too (line 4)"),
    ),
    refusal(
        "duplicate host whose address is another's name",
        """\
        fleet: office
        hosts:
          spark.example.net:
          other: {address: Spark.Example.net}
        """,
        (4, "hosts.other", "duplicate host: Spark.Example.net port 22 is spark.example.net's too (line 3)"),
    ),
    refusal("empty fleet", "fleet: office\nhosts: {}\n", (2, "hosts", "the fleet is empty; add a host")),
    refusal("hosts with nothing behind it", "fleet: office\nhosts:\n", (2, "hosts", "the fleet is empty; add a host")),
    refusal("no hosts", "fleet: office\n", (1, "hosts", "the fleet is empty; add a host")),
    refusal("hosts as a list", "fleet: office\nhosts: [spark-1]\n", (2, "hosts", "not a mapping; write `key: value`")),
    refusal("a host as text", "fleet: office\nhosts:\n  spark-1: here\n", (3, "hosts.spark-1", "not a mapping")),
    refusal("no name", "hosts: {spark-1: {}}\n", (1, "fleet", "missing; add this key")),
    refusal(
        "names that do not fit",
        """\
        fleet: My Fleet
        hosts:
          spark_1: {}
        """,
        (1, "fleet", "has not the right form; write two or more lower-case letters"),
        (3, "hosts.spark_1", "has not the right form; write letters, digits, dots and dashes"),
    ),
    refusal(
        "an address with its port",
        """\
        fleet: office
        hosts: {spark-1: {address: "10.0.0.11:22"}}
        """,
        (2, "hosts.spark-1.address", "not an address; write it without a port, which goes under ssh: {port: 22}"),
    ),
    refusal(
        "an address with the width of its network",
        """\
        fleet: office
        hosts: {spark-1: {address: "10.0.0.11/24"}}
        """,
        (2, "hosts.spark-1.address", "has not the right form; write a host name or an IP address without a port"),
    ),
    refusal(
        "many at once, in the order of their lines",
        """\
        flet: office
        defaults:
          hardwear: {}
          services:
            gpt-oss:
              engine: vlm
              model: gpt-oss-120b
              port: 99999
        hosts:
          spark-1: {groups: [none]}
        """,
        (1, "fleet", "missing"),
        (1, "flet", "unknown key; did you mean fleet?"),
        (3, "defaults.hardwear", "unknown key; did you mean hardware?"),
        (6, "defaults.services.gpt-oss.engine", "unknown engine 'vlm'"),
        (8, "defaults.services.gpt-oss.port", "out of range"),
        (10, "hosts.spark-1.groups[0]", "unknown group 'none'"),
    ),
)
