"""What a fleet file says of one host, after defaults, groups and the host's own keys are laid over each other."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from modules.spec.architecture import Architecture
from modules.spec.base import (
    NAMED,
    WRITTEN_OUT,
    AbsolutePath,
    EnvironmentValue,
    HostName,
    IpAddress,
    Ipv4Network,
    ModelName,
    Name,
    PackageVersion,
    Port,
    Strict,
    VariableName,
    broken_rule,
    is_loopback,
    named_or_written_out,
)
from modules.spec.cluster import Cluster
from modules.spec.engine import Container, DraftMethod, Flags, ReadinessOverride
from modules.spec.fabric import Fabric
from modules.spec.gate import Gate
from modules.spec.gateway import Gateway
from modules.spec.image import ImageOverride
from modules.spec.model import Model
from modules.spec.monitoring import Monitoring
from modules.spec.network import Network

ModelChoice = Annotated[
    Annotated[str, Tag(NAMED)] | Annotated[Model, Tag(WRITTEN_OUT)], Discriminator(named_or_written_out)
]
GateChoice = Annotated[
    Annotated[str, Tag(NAMED)] | Annotated[Gate, Tag(WRITTEN_OUT)], Discriminator(named_or_written_out)
]


# A profile that every engine has: none of the catalog's flags, only those that the service itself gives.
OWN_PROFILE = "own"


class Hardware(Strict):
    """What preflight expects. `simulated`: a lab host; only hosts on loopback can be, and reports say so."""

    simulated: bool = False
    gpu: str = "NVIDIA GB10"
    driver: str = Field(
        default="580", pattern=r"^\d+(\.\d+)*\.?$", description="major version, or a prefix of the wanted versions"
    )
    memory_gib: float = Field(default=115.0, gt=0, description="least MemTotal; real Sparks show 119 to 121 GiB")
    reserve_disk_gib: float = Field(
        default=20.0, ge=0, description="free space that must remain after everything is on the host"
    )


class Cuda(Strict):
    """The toolkit on the host. `version`: exact package version or a prefix with `*`."""

    package: str = Field(default="cuda-toolkit-13-0", pattern=r"^cuda-toolkit-\d+-\d+$")
    version: PackageVersion = "13.0.*"
    architecture: Architecture = "12.1f"


class Runtime(Strict):
    """Docker and the NVIDIA container toolkit. `log_*`: `max-size` and `max-file` of docker's json-file driver."""

    container_toolkit_version: PackageVersion = "*"
    log_max_size: str = Field(default="100m", pattern=r"^\d+[kmg]$")
    log_max_files: int = Field(default=3, ge=1)


class System(Strict):
    """The operating system, beside what serving needs of it. Each setting that is unset again is undone.

    `earlyoom`: install it, to end the engine before the host wedges. `protect_ssh`: memory that ssh and those who are
    logged in keep. `swappiness`: vm.swappiness. `clock_cap_mhz`: of the GPU. `desktop`: false: none is started.
    `end_desktop_sessions`: stop it also while somebody is logged in there; otherwise it goes with the next boot.
    """

    earlyoom: bool = False
    protect_ssh: bool = False
    swappiness: int | None = Field(default=None, ge=0, le=200)
    clock_cap_mhz: int | None = Field(default=None, ge=300, le=4000)
    desktop: bool | None = None
    end_desktop_sessions: bool = False

    @field_validator("desktop")
    @classmethod
    def _none_is_started(cls, desktop: bool | None) -> bool | None:
        if desktop:
            raise ValueError("no desktop is started for you: write false for none, or take the key out")
        return desktop


class Bundle(Strict):
    """What `deploys/bundle.py` writes. `export_to`: a directory on the host, on a disk that is mounted there."""

    export_to: AbsolutePath | None = None


class BuildLimits(Strict):
    """What the build of an image may take of its host. `keep_gib`: memory that is not given to compilers.

    `stop_engines`: where not even one compiler fits, stop Tinderbox's services for the build and start them afterwards.
    """

    keep_gib: float = Field(default=16.0, ge=0)
    stop_engines: bool = False


class Spread(Strict):
    """How hosts pass weights to each other.

    `network`: an IPv4 network whose addresses are used between hosts that both have one (the fabric's). `seed`: this
    host fetches from outside where none has the model; without one, the host that has most of it. `limit_mbit`: in
    Mbit/s, each way, on this host.
    """

    enabled: bool = True
    seed: bool = False
    network: Ipv4Network | None = None
    port: Port = 6889
    limit_mbit: float | None = Field(default=None, gt=0)


class Image(Strict):
    """How hosts come by their images. `builder`: the host that builds and pulls for those that name it, and itself.

    `port`: at which the host that has an image offers it to the others, for the time of the transfer, and which docker
    on that host pushes to. `prune`: remove images of ours that neither the fleet file nor the current or last good
    release of any service on the host needs.
    """

    builder: HostName | None = None
    port: Port = 5599
    prune: bool = True


class Weights(Strict):
    """Where weights are kept: an ordinary Hugging Face home. `workers`: files that are fetched at once.

    `remove_unneeded`: revisions that Tinderbox has verified there, and that no release needs any more, go.
    """

    home: AbsolutePath = "/var/lib/tinderbox/huggingface"
    workers: int = Field(default=8, ge=1, le=64)
    spread: Spread = Spread()
    remove_unneeded: bool = False


class Speculative(Strict):
    """A draft model, which proposes tokens that the served model checks: the same replies, sooner where it is right.

    `method`: `eagle3`: a head made for this very model; `draft`: a small model with the same vocabulary. `tokens`:
    proposed at once.
    """

    model: ModelChoice
    method: DraftMethod = "eagle3"
    tokens: int = Field(default=3, ge=1, le=16)


class Watchdog(Strict):
    """How it is seen that a ready server still generates.

    `every_s`: seconds from one request for a few tokens to the next, and for its reply. `checks`: so many without a
    reply and without progress in the engine's counters, one after the other, and it is restarted.
    """

    enabled: bool = True
    every_s: float = Field(default=60.0, ge=5, le=3600)
    checks: int = Field(default=3, ge=2, le=20)


class Service(Strict):
    """One engine serving one model on a host.

    `engine`, `model`, `gate`: names in the catalog; model and gate may also be written out. `flags`: on top of the
    profile's; a value of false takes a flag away. `api_key`: name of a secret; where `listen` is not loopback and
    none is named, the host makes a key of its own. `memory_plan`: whether a service that does not fit into the
    machine's memory by its plan is refused. `watchdog`: how it is watched. `cluster`: the hosts that it spans.
    `keep`: so many releases that were good keep image, weights and caches on the host, the newest first; the one in
    force does in any case.
    `priority`: of several services of a host the higher ones start first, and one that does not fit is the lowest.
    `aliases`: further names by which clients may ask for its model.
    """

    engine: str
    model: ModelChoice
    profile: str = "latency"
    image: ImageOverride = ImageOverride()
    port: Port = 8000
    listen: IpAddress = "127.0.0.1"
    api_key: str | None = None
    flags: Flags = {}
    environment: dict[VariableName, EnvironmentValue] = {}
    container: Container | None = None
    readiness: ReadinessOverride = ReadinessOverride()
    gate: GateChoice | None = None
    memory_plan: Literal["refuse", "warn"] = "refuse"
    speculative: Speculative | None = None
    watchdog: Watchdog = Watchdog()
    cluster: Cluster | None = None
    keep: int = Field(default=1, ge=1, le=20)
    priority: int = Field(default=0, ge=-100, le=100)
    aliases: tuple[ModelName, ...] = ()

    @field_validator("aliases")
    @classmethod
    def _once_each(cls, aliases: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for at, name in enumerate(aliases) if name in aliases[:at]), None)
        if twice is not None:
            raise ValueError(f"{twice} stands there twice: write it once")
        return aliases

    @property
    def is_open(self) -> bool:
        """Whether others than the host itself can reach it."""
        return not is_loopback(self.listen)


class HostSettings(Strict):
    """Everything that decides what a host should be."""

    hardware: Hardware = Hardware()
    network: Network = Network()
    cuda: Cuda = Cuda()
    runtime: Runtime = Runtime()
    system: System = System()
    build: BuildLimits = BuildLimits()
    image: Image = Image()
    weights: Weights = Weights()
    bundle: Bundle = Bundle()
    fabric: Fabric | None = None
    monitoring: Monitoring = Monitoring()
    services: dict[Name, Service] = {}
    gateway: Gateway | None = None

    @field_validator("services")
    @classmethod
    def _ports_differ(cls, services: dict[str, Service]) -> dict[str, Service]:
        by_port: dict[int, str] = {}
        for name, service in services.items():
            if service.port in by_port:
                message = f"services {by_port[service.port]} and {name} both want port {service.port}: change one"
                raise broken_rule(message, name, "port")
            by_port[service.port] = name
        return services
