"""Engines: the programs that serve, as data."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from modules.spec.base import EnvironmentValue, Strict, VariableName


# true: the bare flag; false: the flag left out; a list: its values behind one flag.
def _flag_value(value: Any) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, int | float | str) for item in value):
        return value
    raise ValueError("not a flag's value: write true, false, a number, a text or a list")


FlagValue = Annotated[bool | int | float | str | tuple[str, ...], BeforeValidator(_flag_value)]
# After a dot: a key of a flag that takes a JSON object, in the object's own spelling (`speculative-config.num_tokens`).
FlagName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*(\.[A-Za-z0-9_-]+)*$")]
Flags = dict[FlagName, FlagValue]
DraftMethod = Literal["eagle3", "draft"]


def _with_reasons(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("a capability needs a reason: write each as `NAME: why the engine needs it`")
    for name, reason in value.items():
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError("a capability needs a reason: write `NAME: why the engine needs it`")
        if str(name).removeprefix("CAP_") == "ALL":
            raise ValueError("ALL capabilities would make the container privileged: name those that are needed")
    return value


CapabilityName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z_]*$")]
Capabilities = Annotated[dict[CapabilityName, str], BeforeValidator(_with_reasons)]


class Container(Strict):
    """How an engine's container runs. A fleet file can leave out limits that a host's kernel refuses (the lab's).

    `capabilities`: name (without CAP_) → the reason for it, beyond what docker gives every container. There is no way
    to a privileged one. `entrypoint`: a program in the image, in the place of the image's own entrypoint and of the
    first word of the engine's command; None: the image's entrypoint gets the command.
    """

    ipc: Literal["host", "private"] = "host"
    shm_size: str | None = None
    gpus: bool = True
    ulimits: dict[str, str] = {}
    devices: tuple[str, ...] = ()  # passed on where the node exists on the host
    capabilities: Capabilities = {}
    entrypoint: str | None = Field(default=None, min_length=1)


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"not a regular expression ({error}): correct it") from None
    return value


Pattern = Annotated[str, AfterValidator(_pattern)]


class Readiness(Strict):
    """When an engine counts as ready. `wanted_log`/`refused_log`: regular expressions over the container's log."""

    start_minutes: float = Field(gt=0)
    wanted_log: tuple[Pattern, ...] = ()
    refused_log: tuple[Pattern, ...] = ()


class ReadinessOverride(Strict):
    """What a fleet file may change of an engine's readiness; what is left out stays the engine's."""

    start_minutes: float | None = Field(default=None, gt=0)
    wanted_log: tuple[Pattern, ...] | None = None
    refused_log: tuple[Pattern, ...] | None = None


class MultiNode(Strict):
    """How an engine spans hosts, one process group over all of them.

    `flags`: on every member, where `{nodes}`, `{rank}`, `{master}` and `{master_port}` stand for the cluster's;
    `worker_flags`: on all but the head, on top. `sizes`: flags whose product is the number of hosts; the first is set
    to it where the service sets none. `address_variables`: get the member's address; `interface_variables`: the
    network interface that has it; `hca_variables`: the RoCE devices whose link is up. Those are asked of the host at
    each start.
    """

    flags: Flags
    worker_flags: Flags = {}
    sizes: tuple[FlagName, ...] = Field(min_length=1)
    address_variables: tuple[VariableName, ...] = ()
    interface_variables: tuple[VariableName, ...] = ()
    hca_variables: tuple[VariableName, ...] = ()
    environment: dict[VariableName, EnvironmentValue] = {}
    source: str
    verified: str = "unverified on hardware"


class Engine(Strict):
    """A program that serves.

    `command`: argv in the container, where `{model}` stands for the path of the model's folder (or of its `file`),
    `{port}`, `{listen}` and `{served_as}` for the service's. `flags`: for every profile; `profiles`: name → flags on
    top. `caches`: name → path in the container of a directory that outlives it. `api_key_variable`: in which the engine
    takes its API key; null: it takes none. `speculative`: method → flags for a draft model, where `{draft}` stands for
    its path, `{draft_tokens}` for how many tokens it proposes, `{draft_tokens_and_one}` for one more. `process`:
    regular expression over the host's process list that finds it.
    `native_fp4`: it is meant to compute in FP4, and an image without such code in it is refused. `multi_node`: how it
    spans hosts; null: it can not. `several_names`: behind the flag where `{served_as}` stands it takes further names.
    """

    recipe: str
    command: tuple[str, ...]
    flags: Flags = {}
    profiles: dict[str, Flags] = Field(min_length=1)
    environment: dict[VariableName, EnvironmentValue] = {}
    container: Container = Container()
    caches: dict[str, str] = {}
    readiness: Readiness
    api_key_variable: str | None = None
    speculative: dict[DraftMethod, Flags] = {}
    process: str
    native_fp4: bool = False
    several_names: bool = False
    multi_node: MultiNode | None = None
    source: str
    verified: str = "unverified on hardware"


# How far engines differ in what they read as a number is theirs to say: `8192`, `-1`, `.9`, `1e3`, `32k`, `1_000`.
_NUMBER_LIKE = re.compile(r"^[+-]?\.?\d[\d_.eE+-]*[kKmMgGtTbBi]*$")


def _names(value: Any) -> Any:
    return value.split() if isinstance(value, str) else value


Names = Annotated[frozenset[str], BeforeValidator(_names)]


class KnownFlags(Strict):
    """The flags that an engine's program knows, in the catalog's file with spaces between.

    `names`: without dashes. `short`: short name without its dash → long name. `values`: flag → all that it takes, where
    that is a list of names (parsers). `numbers`: flags that take one number.
    """

    names: Annotated[frozenset[FlagName], BeforeValidator(_names)]
    short: dict[str, FlagName] = {}
    values: dict[FlagName, Names] = {}
    numbers: Annotated[frozenset[FlagName], BeforeValidator(_names)] = frozenset()
    source: str

    def lacks_number(self, flag: str, value: FlagValue) -> bool:
        """Whether the flag takes a number, and this is certainly none. `32k` may be one, and `auto` where it fits."""
        if flag not in self.numbers or value is False:
            return False
        if not isinstance(value, str):
            return isinstance(value, bool | tuple)
        return not _NUMBER_LIKE.match(value) and not (flag == "max-model-len" and value == "auto")

    def knows(self, flag: str) -> bool:
        """Whether the program has the flag; of one with a key after a dot, its first part."""
        return flag.partition(".")[0] in self.names
