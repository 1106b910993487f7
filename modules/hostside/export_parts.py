"""What a bundle is made of: each part with where it comes from, how large it is, and how to read it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside import weights_hashes, weights_stamp
    from modules.hostside.atomic import read_json
    from modules.hostside.bundle import BundleError, sha256_of
    from modules.hostside.bundle_writer import BundleWriter
    from modules.hostside.fetch_encodings import ENCODINGS
    from modules.hostside.install_tools import LOCK, TOOLS, identity
    from modules.hostside.progress import Progress
    from modules.hostside.provenance import RECIPE_LABEL
else:
    import docker_cli as docker
    import weights_hashes
    import weights_stamp
    from atomic import read_json
    from bundle import BundleError, sha256_of
    from bundle_writer import BundleWriter
    from fetch_encodings import ENCODINGS
    from install_tools import LOCK, TOOLS, identity
    from progress import Progress
    from provenance import RECIPE_LABEL

_PIECE = 4 * 1024 * 1024
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Part:
    """A file of the bundle. `of`: what it is made from. `size`: in bytes; of an image at most that.

    `pieces`: its content; raises `BundleError` where the source is not what it should be.
    """

    path: str
    of: str
    size: int
    what: str
    pieces: Callable[[], Iterator[bytes]]


def image_file(name: str) -> str:
    """Where an image lies in a bundle."""
    return f"images/{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}.tar"


def image_part(image: dict[str, Any]) -> Part:
    """An image of this host's docker."""
    name = image["name"]
    found = _inspected(name)

    def pieces() -> Iterator[bytes]:
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(["docker", "save", name], stdout=subprocess.PIPE, stderr=said) as saving,
        ):
            try:
                while saving.stdout is not None and (piece := saving.stdout.read(_PIECE)):
                    yield piece
            except GeneratorExit:
                saving.kill()
                raise
            if saving.wait() != 0:
                said.seek(0)
                raise BundleError(f"docker save {name} failed: {said.read().decode('utf-8', 'replace').strip()}")

    return Part(image_file(name), found["Id"], int(found["Size"]), f"exporting image {name}", pieces)


def image_entry(image: dict[str, Any]) -> dict[str, Any]:
    """What the manifest says of an image."""
    found = _inspected(image["name"])
    labels = (found.get("Config") or {}).get("Labels") or {}
    more = {"id": found["Id"], "recipe": labels.get(RECIPE_LABEL), "labels": labels, "bytes": int(found["Size"])}
    return image | more | {"file": image_file(image["name"])}


def _inspected(name: str) -> dict[str, Any]:
    found = docker.inspect(name)
    if found is None:
        raise BundleError(f"image {name} is not on this host: run deploys/spark.py first")
    return found


def model_parts(model: dict[str, Any]) -> tuple[dict[str, Any], list[Part]]:
    """What the manifest says of a model, and its files; only of one that was verified here and is untouched since."""
    name = model["repository"]
    repository = weights_stamp.Repository(Path(model["home"]), name)
    commit = model["commit"] or repository.commit(model["revision"])
    stamp = weights_stamp.read_stamp(repository, commit) if commit is not None else None
    if commit is None or stamp is None or stamp["filters"] != model["filters"]:
        raise BundleError(f"{name}@{model['revision']} was not verified on this host: run deploys/weights.py first")
    if problems := weights_stamp.touched(stamp):
        raise BundleError(f"{name} is not what was verified: {problems[0]}: run deploys/weights.py first")
    files = weights_stamp.stamped_files(stamp)
    folder = f"hub/{repository.folder.name}"
    blobs = {file.digest: file for file in files}
    parts = [
        Part(f"{folder}/blobs/{digest}", digest, file.size, f"exporting {name}", _blob(repository, commit, file))
        for digest, file in blobs.items()
    ]
    listing = read_json(repository.tree(commit))
    entry = {
        "repository": name,
        "commit": commit,
        "revisions": sorted({model["revision"], commit}),
        "filters": model["filters"],
        "folder": folder,
        "files": [asdict(file) for file in files],
        "tree": None if listing is None else listing["files"],
    }
    return entry, parts


def _blob(
    repository: weights_stamp.Repository, commit: str, file: weights_stamp.WantedFile
) -> Callable[[], Iterator[bytes]]:
    path = repository.snapshot(commit) / file.path

    def pieces() -> Iterator[bytes]:
        found = weights_hashes.hub_hash(file.size, lfs=file.lfs)
        with path.open("rb") as source:
            while piece := source.read(_PIECE):
                found.update(piece)
                yield piece
        if found.hexdigest() != file.digest:
            raise BundleError(f"{path} is not what the hub publishes: run deploys/weights.py, then this again")

    return pieces


def encoding_part(encoding: dict[str, Any]) -> Part:
    """A vocabulary."""
    name, path = encoding["name"], ENCODINGS / encoding["name"]
    if not path.is_file() or sha256_of(path) != encoding["sha256"]:
        raise BundleError(f"{path} is missing or altered: run deploys/encodings.py first")
    return Part(
        f"encodings/{name}",
        encoding["sha256"],
        encoding["size"],
        f"exporting {name}",
        lambda: iter([path.read_bytes()]),
    )


def link_snapshot(root: Path, model: dict[str, Any]) -> None:
    """Name the files as the Hugging Face layout does, where the disk knows links: other tools then find them, too."""
    snapshot = root / model["folder"] / "snapshots" / model["commit"]
    with suppress(OSError):
        for file in model["files"]:
            link = snapshot / file["path"]
            link.parent.mkdir(parents=True, exist_ok=True)
            up = "../" * (len(Path(file["path"]).parts) + 1)
            link.unlink(missing_ok=True)
            link.symlink_to(f"{up}blobs/{file['digest']}")


def wheels(writer: BundleWriter, progress: Progress) -> list[str]:
    """Have the packages that the tools' lock names; gives their paths. pip takes only files with the lock's hashes."""
    lock = LOCK.read_text()
    folder = writer.root / "wheels"
    if writer.tools != identity(lock):
        progress.report("fetching the tools' packages")
        words = ["download", "--require-hashes", "--only-binary=:all:", "--disable-pip-version-check"]
        words += ["--progress-bar", "off", "--requirement", str(LOCK), "--dest", str(folder)]
        python = TOOLS / "current" / "bin" / "python"
        if not python.exists():
            raise BundleError("the tools are not on this host: run deploys/spark.py first")
        if subprocess.run([str(python), "-m", "pip", *words], check=False).returncode != 0:
            raise BundleError(
                "pip could not fetch the tools' packages (see above): the host that exports needs an index"
            )
        wanted = set(_HASH.findall(lock))
        for outdated in [path for path in writer.files if path.startswith("wheels/")]:
            del writer.files[outdated]
        for path in sorted(folder.glob("*.whl")):
            sha256 = sha256_of(path)
            if sha256 in wanted:
                writer.add(f"wheels/{path.name}", sha256, path.stat().st_size, sha256)
            else:
                path.unlink()
        writer.tools = identity(lock)
    return [path for path in writer.files if path.startswith("wheels/")]
