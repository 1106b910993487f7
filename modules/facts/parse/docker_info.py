"""`docker info`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "docker info"


@dataclass(frozen=True)
class DockerInfo:
    """`runtimes`: names that containers can be started with; the toolkit can be installed and `nvidia` not be one."""

    server: str
    storage_driver: str
    cgroup_driver: str
    root: str
    runtimes: tuple[str, ...]
    default_runtime: str
    logging_driver: str
    warnings: tuple[str, ...]

    @property
    def has_nvidia(self) -> bool:
        """Whether the nvidia runtime is registered."""
        return "nvidia" in self.runtimes


def parse_docker_info(text: str) -> DockerInfo:
    """The server's part. A daemon that does not answer is an error: nothing is known then."""
    values: dict[str, str] = {}
    warnings = []
    for at, line in enumerate(lines_of(text), start=1):
        stripped = line.strip()
        if re.match(r"(ERROR: )?(Cannot connect to the Docker daemon|permission denied|Error response)", stripped):
            raise ParseError(_PROGRAM, "the daemon does not answer", line=at, text=stripped)
        if stripped.startswith("WARNING:"):
            warnings.append(stripped.removeprefix("WARNING:").strip())
        key, colon, value = stripped.partition(":")
        if colon and value.strip():
            values.setdefault(key, value.strip())
    try:
        return DockerInfo(
            server=values["Server Version"],
            storage_driver=values["Storage Driver"],
            cgroup_driver=values["Cgroup Driver"],
            root=values["Docker Root Dir"],
            runtimes=tuple(values["Runtimes"].split()),
            default_runtime=values["Default Runtime"],
            logging_driver=values["Logging Driver"],
            warnings=tuple(warnings),
        )
    except KeyError as missing:
        raise ParseError(_PROGRAM, f"no {missing.args[0]}", text=text) from missing
