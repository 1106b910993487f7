"""The fleet's one endpoint: who may ask it, for which services, and how much of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from modules.spec.base import AbsolutePath, IpAddress, Name, Port, Strict, broken_rule, is_loopback

# HAProxy opens its ports as root, so those that browsers and clients expect are free to choose.
GatewayPort = Annotated[int, Field(ge=1, le=65535)]


class Tls(Strict):
    """The certificate that clients see: two files of the controller, or one that is on the host already.

    `certificate`, `key`: PEM files on the controller, relative to the fleet file; the certificate first, then those
    that sign it. `host_file`: a PEM file on the host with all of these, which somebody else renews there.
    """

    certificate: str | None = None
    key: str | None = None
    host_file: AbsolutePath | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Tls:
        pair = (self.certificate is not None, self.key is not None)
        if self.host_file is not None and any(pair):
            raise broken_rule("give certificate and key, or host_file, and not both")
        if self.host_file is None and not all(pair):
            raise broken_rule("give certificate and key, or host_file")
        return self


class Client(Strict):
    """Somebody who may ask. `key`: the name of a secret. The others are in place of the limits for every client."""

    key: str
    requests_per_minute: int | None = Field(default=None, ge=1)
    concurrent: int | None = Field(default=None, ge=1)


class Limits(Strict):
    """What one client may ask for, and what the gateway holds.

    `requests_per_minute`, `concurrent`: of each client; null: no limit. `per_host`: requests that one host works on at
    once; further ones wait at the gateway, for `queue_s` seconds at most; null: the engine queues them itself.
    `body_kib`: longest request; each one is read whole before it is passed on. `response_s`: longest silence of an
    engine. `connections`: of all clients together.
    """

    requests_per_minute: int | None = Field(default=None, ge=1)
    concurrent: int | None = Field(default=None, ge=1)
    per_host: int | None = Field(default=None, ge=1)
    queue_s: int = Field(default=60, ge=1, le=3600)
    body_kib: int = Field(default=1024, ge=16, le=16384)
    response_s: int = Field(default=3600, ge=10, le=86400)
    connections: int = Field(default=2000, ge=10, le=50000)


class Metrics(Strict):
    """Where HAProxy tells its figures to Prometheus (`/metrics`) and to people (`/stats`). No key is asked for."""

    listen: IpAddress = "127.0.0.1"
    port: Port = 8405


class Gateway(Strict):
    """One endpoint for the fleet's services, on this host.

    `services`: names; none: all of the fleet. `balance`: `least_connections`, or `prefix`: requests of one conversation
    go to one host, which has its beginning in its cache. `agent_port`: at which every host that serves tells whether it
    takes requests. `drain_s`: longest wait, before a server is stopped, for the replies that it is at.
    """

    listen: IpAddress = "127.0.0.1"
    port: GatewayPort = 8080
    tls: Tls | None = None
    clients: dict[Name, Client] = {}
    services: tuple[Name, ...] = ()
    balance: Literal["least_connections", "prefix"] = "least_connections"
    limits: Limits = Limits()
    metrics: Metrics = Metrics()
    agent_port: Port = 5588
    drain_s: int = Field(default=120, ge=0, le=3600)

    @model_validator(mode="after")
    def _closed_to_strangers(self) -> Gateway:
        if not self.clients and not is_loopback(self.listen):
            message = f"listens on {self.listen}, where others can reach it, and no client has a key"
            raise broken_rule(message, "listen")
        if self.metrics.port == self.port:
            raise broken_rule(f"the gateway and its metrics both want port {self.port}: change one", "metrics", "port")
        return self
