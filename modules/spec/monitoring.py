"""How hosts are watched: exporters on them, Prometheus and Grafana on one of them, and what alerts go by."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from modules.spec.base import AbsolutePath, IpAddress, Name, Port, Strict, Url, broken_rule, is_loopback


def _network(value: str) -> str:
    try:
        ipaddress.ip_network(value)
    except ValueError:
        raise ValueError("not an address or a network: write 10.0.0.5 or 10.0.0.0/24, without host bits") from None
    return value


Network = Annotated[str, AfterValidator(_network)]
# Prometheus' own form of a span of time, whole units of which are enough here.
Retention = Annotated[str, StringConstraints(pattern=r"^[1-9]\d*[hdwy]$")]
# A tag may be given another image at any time; a digest may not.
PinnedImage = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._/:-]*@sha256:[0-9a-f]{64}$")]


class Listening(Strict):
    """Where a program answers. `scraped_from`: who may ask it; all others are turned away by the kernel.

    An address beyond loopback needs it, since none of these programs asks for a key.
    """

    listen: IpAddress = "127.0.0.1"
    scraped_from: tuple[Network, ...] = ()

    @model_validator(mode="after")
    def _not_open_to_all(self) -> Listening:
        if not is_loopback(self.listen) and not self.scraped_from:
            raise broken_rule(
                f"listens on {self.listen}, where others can reach it: name who may ask it, as [10.0.0.5]",
                "scraped_from",
            )
        return self


class Exporters(Listening):
    """Node exporter, and beside it what only Tinderbox knows: GPU, services, gates, engines.

    `every_s`: seconds from one collection to the next. `node_exporter`: false: the site has its own, which reads
    `textfile_directory`; Tinderbox then writes there and installs nothing.
    """

    port: Port = 9100
    every_s: float = Field(default=15.0, ge=5, le=300)
    node_exporter: bool = True
    textfile_directory: AbsolutePath = "/var/lib/prometheus/node-exporter"


class Alerts(Strict):
    """What alerts go by.

    `for_s`: how long a thing is wrong before it is told, in place of each alert's own time. `low_clock_mhz`: below
    which a GPU that is busy (`busy_ratio`) is stuck; Sparks in that state show 500 to 850 MHz, healthy ones 2400, and
    preflight goes by the same figure. `temperature_c` is unverified on hardware. `restarts`:
    so many within `restart_minutes` are a loop. `load_stop_minutes`: for how long a load that was stopped is told.
    """

    for_s: int | None = Field(default=None, ge=0, le=86400)
    gate_age_days: float = Field(default=30.0, gt=0)
    low_clock_mhz: float = Field(default=900.0, gt=0)
    busy_ratio: float = Field(default=0.5, gt=0, le=1)
    temperature_c: float = Field(default=85.0, gt=0)
    restarts: int = Field(default=2, ge=1)
    restart_minutes: int = Field(default=15, ge=1, le=1440)
    load_stop_minutes: int = Field(default=60, ge=1, le=1440)
    disk_free_ratio: float = Field(default=0.1, gt=0, lt=1)
    memory_reserve_gib: float | None = Field(
        default=None, gt=0, description="in place of the reserve that the memory plans leave to the system"
    )
    nightly_hours: float | None = Field(
        default=None, gt=0, description="the last nightly check may be so old; without it none is expected"
    )


class Prometheus(Listening):
    """Prometheus from the distribution's package, on the host that has this key.

    `retention`: as 30d. `retention_gib`: the oldest data goes when there is more. `alertmanagers`: base URLs.
    """

    port: Port = 9090
    scrape_s: int = Field(default=15, ge=5, le=300)
    retention: Retention = "30d"
    retention_gib: int | None = Field(default=None, ge=1)
    alertmanagers: tuple[Url, ...] = ()


class Grafana(Strict):
    """Grafana in a container, with datasource and dashboards. Unverified: there is no image of it in the lab.

    `image`: with its digest. `admin_password`: name of a secret.
    """

    image: PinnedImage
    admin_password: Name
    listen: IpAddress = "127.0.0.1"
    port: Port = 3000


class Monitoring(Strict):
    """How a host is watched; nothing of it is there unless it is asked for.

    `existing_prometheus`: the site has its own; `python -m modules.monitoring export` gives it targets, rules and
    dashboards.
    """

    exporters: Exporters | None = None
    prometheus: Prometheus | None = None
    grafana: Grafana | None = None
    existing_prometheus: bool = False
    alerts: Alerts = Alerts()

    @model_validator(mode="after")
    def _one_prometheus(self) -> Monitoring:
        if self.prometheus is not None and self.existing_prometheus:
            raise broken_rule("either the site's Prometheus or one of ours: take one of the two out", "prometheus")
        if self.grafana is not None and self.prometheus is None:
            raise broken_rule("Grafana shows what the Prometheus beside it has: add prometheus on this host", "grafana")
        return self

    @property
    def wanted(self) -> bool:
        """Whether anything of it is to be on the host."""
        return self.exporters is not None or self.prometheus is not None or self.grafana is not None
