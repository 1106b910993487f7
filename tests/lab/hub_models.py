"""Models of a few megabytes on the lab's hub, so that what is done to one touches no other test."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modules.lab.mirror.hub import HubIndex
from modules.lab.model.repository import COMMIT, REPOSITORY, commit_of, hub, listing
from tests.lab.lab_driver import Lab
from tests.unit.safetensors_samples import shard

MIB = 1024 * 1024
ONE, TWO, CONFIG = "model-1.safetensors", "model-2.safetensors", "config.json"
# Where the mirror's container has what the lab ships.
_SHIPPED = Path("/srv/mirror/hub")


@dataclass(frozen=True)
class HubModel:
    """A repository on the lab's hub."""

    lab: Lab
    name: str

    @property
    def repository(self) -> str:
        return f"tinderbox-lab/{self.name}"

    @property
    def _folder(self) -> Path:
        return self.lab.layout.mirror_state / "hub" / self.repository

    def publish(self, files: Mapping[str, bytes], *, revision: str = "main") -> str:
        """Have `revision` be a commit of these files; gives the commit."""
        work = self._folder / "work"
        for path, content in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(content)
        listed = listing(work)
        commit = commit_of(listed)
        shutil.rmtree(self._folder / commit, ignore_errors=True)
        work.rename(self._folder / commit)
        index = self._index()
        index["refs"][revision] = commit
        index["commits"][commit] = listed
        self._write(index)
        return commit

    def alter(self, commit: str, files: Mapping[str, bytes]) -> None:
        """Have a commit be other files than it was."""
        work = self._folder / "work"
        for path, data in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(data)
        index = self._index()
        index["commits"][commit] = listing(work)
        shutil.rmtree(self._folder / commit)
        work.rename(self._folder / commit)
        self._write(index)

    def publish_the_labs(self, token: str) -> None:
        """Have the model that the lab serves here once more, for whoever has this token."""
        self._folder.mkdir(parents=True, exist_ok=True)
        there = json.loads((hub().path / REPOSITORY / "hub.json").read_text())
        (self._folder / COMMIT).unlink(missing_ok=True)
        (self._folder / COMMIT).symlink_to(_SHIPPED / REPOSITORY / COMMIT)
        self._write({**there, "gated": hashlib.sha256(token.encode()).hexdigest()})

    def gate(self, token: str) -> None:
        """Give files only to who has this token."""
        self._write({**self._index(), "gated": hashlib.sha256(token.encode()).hexdigest()})

    def written_out(self, **changes: Any) -> dict[str, Any]:
        """As a fleet file has it."""
        return {
            "repository": self.repository, "size_gib": 0.01, "served_as": "tiny", "source": "made by a test", **changes,
        }  # fmt: skip

    def served(self, content: dict[str, Any], **changes: Any) -> None:
        """Have the fleet file's only service serve it."""
        content["defaults"]["services"]["gpt-oss"]["model"] = self.written_out(**changes)

    def folder_in(self, home: str) -> str:
        """Its place in a Hugging Face home."""
        return f"{home}/hub/models--{self.repository.replace('/', '--')}"

    def fetched(self, since: int) -> list[tuple[str, int]]:
        """File and bytes of every answer of the hub that held bytes of one."""
        return [
            (each["path"].rsplit("/", 1)[1], each["bytes"])
            for each in self.lab.requests(since)
            if each["method"] == "GET" and f"/{self.repository}/resolve/" in each["path"] and each["bytes"]
        ]

    def whole(self, host: str, home: str, commit: str) -> None:
        """It is on the host as published, and nothing else of it is."""
        words = f"--repository {self.repository} --revision {commit} --home {home} --hash"
        said = self.lab.ssh(host, f"sudo python3 /usr/local/lib/tinderbox/verify_weights.py {words}", check=False)
        found = json.loads(said.stdout)
        assert (said.rc, found["problems"], found["commit"]) == (0, [], commit), said.text
        left = self.lab.ssh(host, f"sudo find {self.folder_in(home)} -name '*.incomplete' -o -name '.*swarm*'").stdout
        assert left == ""

    def _index(self) -> HubIndex:
        path = self._folder / "hub.json"
        if not path.exists():
            return {"refs": {}, "commits": {}}
        index: HubIndex = json.loads(path.read_text())
        return index

    def _write(self, index: object) -> None:
        fresh = self._folder / "hub.json.new"
        fresh.write_text(json.dumps(index))
        fresh.rename(self._folder / "hub.json")

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def content(seed: str, size: int = 2 * MIB) -> dict[str, bytes]:
    """Two weight files of random bytes, of `size` each, and a small one."""
    chance = random.Random(seed)
    return {
        ONE: shard(size, chance.randbytes(size), "one"),
        TWO: shard(size, chance.randbytes(size), "two"),
        CONFIG: json.dumps({"made_of": seed}).encode(),
    }


@contextmanager
def hub_model(lab: Lab, name: str) -> Iterator[HubModel]:
    """A repository that is gone afterwards."""
    model = HubModel(lab, name)
    model.remove()
    try:
        yield model
    finally:
        model.remove()
