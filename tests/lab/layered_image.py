"""An image of a few layers that no compression makes smaller, so that the bytes of a transfer mean something."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modules.fleet.lock import read_lock
from modules.images import Build, build_of, pinned
from modules.spec.image import Recipe
from tests.lab.lab_driver import Lab
from tests.lab.tiny_recipe import tiny

NAME = "layered"
_FLEET = "fleet-layered"
DOCKERFILE = """\
ARG BASE={{ base }}
# hadolint ignore=DL3006
FROM ${BASE}
{% for seed in arguments.LAYERS.split() %}
RUN ["python3", "-c", "import random; random.seed('{{ seed }}'); \\
open('/layer-{{ loop.index }}', 'wb').write(random.randbytes({{ arguments.MIB }} << 20))"]
{% endfor %}
LABEL tinderbox.check='["test", "-s", "/layer-1"]'
COPY tinderbox-image.json /etc/tinderbox-image.json
"""


def layered(lab: Lab, layers: Sequence[str], mib: int) -> dict[str, Any]:
    """The recipe as a fleet file writes it out. `layers`: a word for each, from which its content is made."""
    return tiny(lab, DOCKERFILE, name=NAME, pins={}, packages={}, compiler_gib=0, arguments=_arguments(layers, mib))


def layered_build(lab: Lab, layers: Sequence[str], mib: int) -> Build:
    """What the product makes of it, on the base that the lock of `layered_fleet` names."""
    written = layered(lab, layers, mib)
    recipe = Recipe.model_validate({**written, "template": str(lab.layout.folder / written["template"])})
    return build_of(pinned(recipe, read_lock(lab.layout.folder / f"{_FLEET}.yaml")))


def layered_fleet(lab: Lab, hosts: Sequence[str], layers: Sequence[str], mib: int, **settings: Any) -> Path:
    """A fleet file of these hosts, whose only service has this image. `settings`: of every host, by section."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {host: content["hosts"][host] for host in hosts}
        content["defaults"] |= settings
        for service in content["defaults"]["services"].values():
            service["image"] = {"recipe": layered(lab, layers, mib)}

    return lab.write_fleet(_FLEET, change)


def forget_images(lab: Lab, hosts: Sequence[str]) -> None:
    """Leave nothing of earlier tests on hosts of a lab that was found up: no image, no layer, no job."""
    kept = "/var/lib/docker/* /var/lib/tinderbox/registry /var/lib/tinderbox/jobs /var/lib/tinderbox/images"
    steps = [
        "systemctl stop docker.service docker.socket tinderbox-offer.service 'tinderbox-job-*'",
        f"rm -rf {kept} /run/tinderbox",
        "systemctl start docker.service",
    ]
    for host in hosts:
        lab.ssh(host, f"sudo sh -c {shlex.quote('; '.join(steps))}")


def _arguments(layers: Sequence[str], mib: int) -> dict[str, str]:
    return {"LAYERS": " ".join(layers), "MIB": str(mib)}
