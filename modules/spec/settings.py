"""What a fleet file says of one host, after defaults, groups and the host's own keys are laid over each other."""

from __future__ import annotations

from pydantic import Field, field_validator

from modules.spec.architecture import Architecture
from modules.spec.base import AbsolutePath, Name, Port, Strict
from modules.spec.engine import Container, Flags
from modules.spec.gate import Gate
from modules.spec.image import ImageOverride
from modules.spec.model import Model
from modules.spec.network import Network


class Hardware(Strict):
    """What preflight expects. `simulated`: a lab host; allowed only with hosts on loopback, and shown wherever it matters."""

    simulated: bool = False
    gpu: str = "NVIDIA GB10"
    driver: str = Field(default="580", description="major version, or a prefix of the wanted versions")
    memory_gib: float = Field(default=115.0, gt=0, description="least MemTotal; real Sparks show 119 to 121 GiB")
    reserve_disk_gib: float = Field(
        default=20.0, ge=0, description="free space that must remain after everything is on the host"
    )


class Cuda(Strict):
    """The toolkit on the host. `version`: exact package version or a prefix with `*`."""

    package: str = Field(default="cuda-toolkit-13-0", pattern=r"^cuda-toolkit-\d+-\d+$")
    version: str = "13.0.*"
    architecture: Architecture = "12.1f"


class Runtime(Strict):
    """Docker and the NVIDIA container toolkit. Log rotation as `max-size` and `max-file` of docker's json-file driver."""

    container_toolkit_version: str = "*"
    log_max_size: str = Field(default="100m", pattern=r"^\d+[kmg]$")
    log_max_files: int = Field(default=3, ge=1)


class Weights(Strict):
    """Where weights are kept: an ordinary Hugging Face home."""

    home: AbsolutePath = "/var/lib/tinderbox/huggingface"
    workers: int = Field(default=8, ge=1, le=64)


class Service(Strict):
    """One engine serving one model on a host.

    `engine`, `model`, `gate`: names in the catalog; model and gate may also be written out. `flags`: on top of the
    profile's; a value of false takes a flag away. `api_key`: name of a secret; needed when `listen` is not loopback.
    """

    engine: str
    model: str | Model
    profile: str = "latency"
    image: ImageOverride = ImageOverride()
    port: Port = 8000
    listen: str = "127.0.0.1"
    api_key: str | None = None
    flags: Flags = {}
    environment: dict[str, str] = {}
    container: Container | None = None
    gate: str | Gate | None = None


class HostSettings(Strict):
    """Everything that decides what a host should be."""

    hardware: Hardware = Hardware()
    network: Network = Network()
    cuda: Cuda = Cuda()
    runtime: Runtime = Runtime()
    weights: Weights = Weights()
    services: dict[Name, Service] = {}

    @field_validator("services")
    @classmethod
    def _ports_differ(cls, services: dict[str, Service]) -> dict[str, Service]:
        by_port: dict[int, str] = {}
        for name, service in services.items():
            if service.port in by_port:
                raise ValueError(f"services {by_port[service.port]} and {name} both want port {service.port}")
            by_port[service.port] = name
        return services
