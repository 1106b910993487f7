"""The site's network: what stands between a host and the outside."""

from __future__ import annotations

from pydantic import Field, model_validator

from modules.spec.base import IpAddress, Strict, Url, broken_rule


class AptRepository(Strict):
    """A signed apt repository.

    `key_url`: the OpenPGP key, armoured or binary. `fingerprint`: 40 hex digits; a key with another one is refused.
    `fingerprint_file`: a file on the controller that holds the fingerprint, relative to the fleet file. Exactly one of
    the two is given; a loaded fleet has `fingerprint` only.
    """

    uri: Url
    suite: str = "/"
    components: tuple[str, ...] = ()
    key_url: Url
    fingerprint: str | None = Field(default=None, pattern=r"^[0-9A-F]{40}$")
    fingerprint_file: str | None = None

    @model_validator(mode="after")
    def _one_fingerprint(self) -> AptRepository:
        if (self.fingerprint is None) == (self.fingerprint_file is None):
            raise broken_rule("give exactly one of fingerprint, fingerprint_file")
        return self


class Proxy(Strict):
    """Proxies for everything that a host or a build fetches."""

    http: Url | None = None
    https: Url | None = None
    no_proxy: tuple[str, ...] = ()


class AptSources(Strict):
    """Repositories that replace those of the catalog (a mirror inside the site, say)."""

    cuda: AptRepository | None = None
    container_toolkit: AptRepository | None = None


class Network(Strict):
    """What a host, and every docker build on it, needs to reach the outside.

    `ca_bundle`: file on the controller, relative to the fleet file, with extra certificate authorities (PEM).
    `hub`: Hugging Face endpoint. `encodings`: base URL of the tiktoken files. `pip_index`: PEP 503 index.
    `registry`: `host[:port]` of a registry that holds the base images under their own names. `peer_address`: the
    host's own address at which the fleet's others reach it; without one, that at which the controller does.
    """

    ca_bundle: str | None = None
    proxy: Proxy = Proxy()
    pip_index: Url | None = None
    apt: AptSources = AptSources()
    hub: Url | None = None
    encodings: Url | None = None
    registry: str | None = Field(default=None, pattern=r"^[A-Za-z0-9.-]+(:\d+)?$")
    peer_address: IpAddress | None = None
