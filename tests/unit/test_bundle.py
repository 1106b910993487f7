"""Bundles: exported file by file, taken up after a cut, refused where a file is wrong, and brought to another host."""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.safetensors_samples import shard

# As the programs import them on a host, so that what is patched here is what they use.

if TYPE_CHECKING:
    from modules.hostside import (
        bundle_state,
        docker_cli,
        export_bundle,
        export_parts,
        import_weights,
        weights_stamp,
    )
    from modules.hostside.bundle import Bundle, BundleError
    from modules.hostside.bundle_writer import BundleWriter
    from modules.hostside.progress import Progress
    from modules.hostside.weights_stamp import Repository, WantedFile
else:
    import bundle_state
    import docker_cli
    import export_bundle
    import export_parts
    import import_weights
    import weights_stamp
    from bundle import Bundle, BundleError
    from bundle_writer import BundleWriter
    from progress import Progress
    from weights_stamp import Repository, WantedFile

COMMIT = "c" * 40
FILTERS: dict[str, list[str]] = {"include": [], "exclude": []}
LARGE, SMALL = shard(8000, b"weights "), b'{"a": 1}'


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


FILES = [
    WantedFile("model.safetensors", len(LARGE), hashlib.sha256(LARGE).hexdigest(), lfs=True),
    WantedFile("sub/config.json", len(SMALL), git_blob(SMALL), lfs=False),
    WantedFile("sub/the-same.json", len(SMALL), git_blob(SMALL), lfs=False),
]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host that has a model, verified, and encodings; the bundle's disk is `usb`."""
    monkeypatch.setattr(weights_stamp, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(export_parts, "ENCODINGS", tmp_path / "encodings")
    monkeypatch.setattr(docker_cli, "await_daemon", lambda: "27.0.0")
    monkeypatch.setattr(export_parts, "wheels", lambda writer, progress: [])
    repository = Repository(tmp_path / "home", "owner/name")
    for file, content in zip(FILES, (LARGE, SMALL, SMALL), strict=True):
        blob, entry = repository.blob(file), repository.snapshot(COMMIT) / file.path
        blob.parent.mkdir(parents=True, exist_ok=True)
        entry.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        entry.symlink_to(blob)
    weights_stamp.write_stamp(repository, COMMIT, FILTERS, FILES, "2026-11-30T05:00:00Z")
    (tmp_path / "encodings").mkdir()
    (tmp_path / "encodings/o200k").write_bytes(b"vocabulary")
    (tmp_path / "usb").mkdir()
    return tmp_path


def request(host: Path, **changes: Any) -> dict[str, Any]:
    model = {"repository": "owner/name", "revision": "main", "commit": COMMIT, "home": str(host / "home")}
    encoding = {"name": "o200k", "sha256": hashlib.sha256(b"vocabulary").hexdigest(), "size": 10}
    return {
        "to": str(host / "usb/tinderbox"),
        "key": "key",
        "images": [],
        "models": [model | {"filters": FILTERS}],
        "encodings": [encoding],
        "lock": {"images": {"python:3": "sha256:" + "a" * 64}},
        "reserve_bytes": 0,
        **changes,
    }


def export(host: Path, **changes: Any) -> Path:
    export_bundle.export(request(host, **changes), Progress(host))
    return host / "usb/tinderbox"


def wish(host: Path, root: Path, **changes: Any) -> argparse.Namespace:
    found = {
        "bundle": root, "repository": "owner/name", "revision": "main", "commit": None, "home": host / "other",
        "include": [], "exclude": [], "reserve_bytes": 0,
    }  # fmt: skip
    return argparse.Namespace(**found | changes)


def test_a_bundle_says_what_is_in_it_with_hashes_and_holds_no_content_twice(host: Path) -> None:
    root = export(host)

    manifest = json.loads((root / "manifest.json").read_text())
    files = {file["path"]: file for file in manifest["files"]}
    assert {path.name for path in root.rglob("*") if path.is_file() and not path.is_symlink()} == {
        "manifest.json", "o200k", FILES[0].digest, FILES[1].digest,
    }  # fmt: skip
    for path, file in files.items():
        content = (root / path).read_bytes()
        assert (file["size"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    (model,) = manifest["models"]
    assert (model["commit"], model["revisions"]) == (COMMIT, [COMMIT, "main"])
    assert not (root / "manifest.part.json").exists()
    snapshot = root / "hub/models--owner--name/snapshots" / COMMIT
    assert (snapshot / "sub/the-same.json").read_bytes() == SMALL
    assert bundle_state.look(root, hashes=True) == {
        "key": "key", "files": 3, "bytes": 10 + len(LARGE) + len(SMALL), "problems": [],
        "lock": {"images": {"python:3": "sha256:" + "a" * 64}},
    }  # fmt: skip


class Cut(BaseException):
    """The process is gone."""


def test_an_export_that_was_cut_never_looks_whole_and_goes_on_where_it_ended(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    write = BundleWriter.write

    def dying(self: BundleWriter, path: str, of: str, pieces: Iterator[bytes], *rest: Any) -> None:
        if written:
            write(self, path, of, (_ for _ in ()).throw(Cut()), *rest)
        written.append(path)
        write(self, path, of, pieces, *rest)

    monkeypatch.setattr(BundleWriter, "write", dying)
    with pytest.raises(Cut):
        export(host)
    root = host / "usb/tinderbox"
    with pytest.raises(BundleError, match="not whole, its export was cut"):
        Bundle.open(root)
    assert bundle_state.look(root, hashes=False)["key"] is None

    def counting(self: BundleWriter, path: str, *rest: Any) -> None:
        written.append(path)
        write(self, path, *rest)

    monkeypatch.setattr(BundleWriter, "write", counting)
    export(host)

    assert len(written) == len(set(written)) == 3
    assert bundle_state.look(root, hashes=True)["problems"] == []
    assert not list(root.rglob("*.part"))


def test_another_export_into_the_same_directory_is_not_whole_until_it_is(host: Path) -> None:
    root = export(host)
    with pytest.raises(BundleError, match="was not verified on this host"):
        export(host, models=[{**request(host)["models"][0], "filters": {"include": ["x"], "exclude": []}}])
    assert Bundle.open(root)

    export(host, models=[], key="other")

    assert {file["path"] for file in Bundle.open(root).document["files"]} == {"encodings/o200k"}
    assert not (root / "hub/models--owner--name/blobs" / FILES[0].digest).exists()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda host: (host / "encodings/o200k").write_bytes(b"other"), "o200k is missing or altered"),
        (lambda host: (host / "home/hub/models--owner--name/blobs" / FILES[0].digest).unlink(), "missing"),
        (lambda host: (host / "usb").rmdir(), "is the disk mounted there?"),
    ],
)
def test_a_host_that_has_not_all_of_it_exports_nothing(host: Path, harm: Any, said: str) -> None:
    harm(host)

    with pytest.raises(BundleError, match=said):
        export(host)

    assert not (host / "usb/tinderbox/manifest.json").exists()


def test_a_source_that_is_not_what_its_hub_publishes_is_not_exported(host: Path) -> None:
    blob = host / "home/hub/models--owner--name/blobs" / FILES[0].digest
    repository = Repository(host / "home", "owner/name")
    blob.write_bytes(LARGE[:-1] + b"!")
    weights_stamp.write_stamp(repository, COMMIT, FILTERS, FILES, "2026-11-30T05:00:00Z")

    with pytest.raises(BundleError, match="not what the hub publishes"):
        export(host)

    assert not list((host / "usb/tinderbox").rglob(f"{FILES[0].digest}*"))


def test_space_is_asked_for_before_the_first_byte(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk:
        free = 1000

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk)

    with pytest.raises(BundleError, match=r"the bundle needs 0\.5 GiB more"):
        export(host)

    assert [path for path in (host / "usb/tinderbox").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("number", "said"), [(errno.ENOSPC, "the disk is full"), (errno.EFBIG, "FAT32")])
def test_a_disk_that_takes_no_more_is_told_in_words(host: Path, number: int, said: str) -> None:
    writer = BundleWriter(host / "usb/tinderbox")
    writer.begin()

    def pieces() -> Iterator[bytes]:
        yield b"some"
        raise OSError(number, "no")

    with pytest.raises(BundleError, match=said):
        writer.write("images/x.tar", "id", pieces())

    assert not (host / "usb/tinderbox/images/x.tar.part").exists()
    assert not writer.has("images/x.tar", "id")


def test_weights_come_from_the_bundle_verified_and_as_the_hub_lays_them_out(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = export(host)
    monkeypatch.setattr(weights_stamp, "STAMPS", host / "other-stamps")
    monkeypatch.setenv("TINDERBOX_JOB_DIR", str(host))

    import_weights.run(wish(host, root), Progress(host))

    repository = Repository(host / "other", "owner/name")
    assert repository.commit("main") == COMMIT
    assert (repository.snapshot(COMMIT) / "sub/config.json").read_bytes() == SMALL
    stamp = weights_stamp.read_stamp(repository, COMMIT)
    assert stamp is not None
    assert weights_stamp.touched(stamp) == []
    found = json.loads((host / "result.json").read_text())
    assert (found["commit"], found["notes"]) == (COMMIT, [])
    assert found["files"] == {file.path: file.line for file in FILES}


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (
            lambda blob: blob.write_bytes(b"!" + LARGE[1:]),
            f"{FILES[0].digest} .model.safetensors. is altered: copy it again",
        ),
        (lambda blob: blob.write_bytes(LARGE[:-1]), "is altered: copy it again"),
        (lambda blob: blob.unlink(), f"{FILES[0].digest} .model.safetensors. is missing"),
    ],
)
def test_no_wrong_file_of_a_bundle_gets_a_name_that_a_client_would_trust(host: Path, harm: Any, said: str) -> None:
    root = export(host)
    harm(root / "hub/models--owner--name/blobs" / FILES[0].digest)

    with pytest.raises(BundleError, match=said):
        import_weights.run(wish(host, root), Progress(host))

    repository = Repository(host / "other", "owner/name")
    assert not repository.blob(FILES[0]).exists()
    assert not repository.snapshot(COMMIT).exists()
    assert not list((host / "other").rglob("*.incomplete"))


def test_an_import_that_was_cut_goes_on_with_what_is_there_and_right(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = export(host)
    monkeypatch.setattr(weights_stamp, "STAMPS", host / "other-stamps")
    repository = Repository(host / "other", "owner/name")
    repository.blob(FILES[0]).parent.mkdir(parents=True)
    repository.blob(FILES[0]).write_bytes(LARGE)
    repository.blob(FILES[1]).write_bytes(b"wrong")
    monkeypatch.setenv("TINDERBOX_JOB_DIR", str(host))
    brought: list[str] = []
    bring = import_weights.bring

    def bringing(bundle: Bundle, folder: str, repository: Repository, file: WantedFile, *rest: Any) -> None:
        brought.append(file.path)
        bring(bundle, folder, repository, file, *rest)

    monkeypatch.setattr(import_weights, "bring", bringing)

    import_weights.run(wish(host, root), Progress(host))

    assert len(brought) == 1
    assert brought[0].startswith("sub/")
    (note,) = json.loads((host / "result.json").read_text())["notes"]
    assert "kept as" in note
    assert (repository.snapshot(COMMIT) / "sub/config.json").read_bytes() == SMALL


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"repository": "owner/else"}, "holds no model owner/else@main; it holds: owner/name@c"),
        ({"commit": "d" * 40}, f"holds no model owner/name@{'d' * 40}"),
        ({"include": ["*.json"]}, "holds other files of owner/name"),
    ],
)
def test_what_a_bundle_has_not_is_named_with_what_it_has(host: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(BundleError, match=said):
        import_weights.run(wish(host, export(host), **change), Progress(host))


def test_a_directory_that_is_no_bundle_is_told(host: Path) -> None:
    with pytest.raises(BundleError, match="is the disk mounted"):
        Bundle.open(host)
    (host / "manifest.json").write_text("{}")
    with pytest.raises(BundleError, match="of another form"):
        Bundle.open(host)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.write_bytes(b"vocabularx"), "is altered: sha256"),
        (lambda path: path.write_bytes(b"vocab"), "has 5 bytes, the manifest says 10"),
        (lambda path: path.unlink(), "is missing"),
    ],
)
def test_a_file_that_is_not_what_the_manifest_says_is_named(host: Path, harm: Any, said: str) -> None:
    root = export(host)
    harm(root / "encodings/o200k")

    with pytest.raises(BundleError, match=f"{root}/encodings/o200k {said}"):
        Bundle.open(root).require("encodings/o200k")
    assert len(bundle_state.look(root, hashes=True)["problems"]) == 1
