"""Names of a lab's containers, volumes, images and files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from modules.lab.errors import LabError

ROOT = Path(__file__).parents[2]
LABEL = "tinderbox.lab"
FOLDER_LABEL = "tinderbox.lab.folder"  # tells labs of different checkouts apart
IMAGE_LABEL = "tinderbox.lab.image"
ROOTFS_REPOSITORY, HOST_REPOSITORY = "tinderbox-lab/rootfs", "tinderbox-lab/host"
DEFAULT_NAME = "lab"
USER = "spark"


@dataclass(frozen=True)
class Layout:
    """Where everything of one lab is. Two labs share nothing but images and cached pieces."""

    name: str

    @classmethod
    def named(cls, name: str) -> Layout:
        """The layout of a lab.

        Raises:
            LabError: the name is no name for docker, files and fleets.

        """
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or not 2 <= len(name) <= 32:
            raise LabError(
                f"{name!r} can not name a lab: take 2 to 32 lower case letters, digits and single dashes between them"
            )
        return cls(name)

    @property
    def folder(self) -> Path:
        """The lab's files on this machine."""
        return ROOT / ".lab" / self.name

    @property
    def key(self) -> Path:
        """The private key that hosts let in."""
        return self.folder / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The hosts' real public keys."""
        return self.folder / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`."""
        return self.folder / "ssh_config"

    @property
    def ca(self) -> Path:
        """The CA that signed the mirror's certificate."""
        return self.folder / "ca.pem"

    @property
    def apt_fingerprint(self) -> Path:
        """Fingerprint of the key that signs the apt repositories."""
        return self.folder / "apt-key.fingerprint"

    @property
    def fleet(self) -> Path:
        """The fleet file of this lab."""
        return self.folder / "fleet.yaml"

    @property
    def mirror_state(self) -> Path:
        """The mirror's `names.json`, `faults.json` and `requests.jsonl`."""
        return self.folder / "mirror"

    @property
    def network(self) -> str:
        """The docker network."""
        return f"tinderbox-{self.name}"

    @property
    def mirror(self) -> str:
        """The mirror's container."""
        return f"tinderbox-{self.name}-mirror"

    @property
    def labels(self) -> dict[str, str]:
        """On all that docker keeps for this lab, and on nothing else."""
        return {LABEL: self.name, FOLDER_LABEL: str(self.folder)}

    def made(self, labels: Mapping[str, str]) -> bool:
        """Whether something with these labels belongs to this lab."""
        folder = str(self.folder)
        return labels.get(LABEL) == self.name and labels.get(FOLDER_LABEL, folder) == folder

    def host(self, number: int) -> str:
        """Name of a host, counted from 1, in the fleet file and on the network."""
        return f"spark-{number}"

    def container(self, host: str) -> str:
        """A host's container."""
        return f"tinderbox-{self.name}-{host}"

    def docker_volume(self, host: str) -> str:
        """The volume with a host's inner docker state."""
        return f"tinderbox-{self.name}-{host}-docker"
