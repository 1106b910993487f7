"""The programs that measure how fast weight files are read and loaded, on files of this machine."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from modules.hostside import load_ways, loaders, page_cache, probe_ways
from modules.hostside.disk_rates import BLOCK, by_mapping, by_reading, cold_and_warm, direct, sample
from modules.hostside.kept_load import kept_load
from modules.hostside.load_ways import all_turns, chosen
from modules.hostside.probe_load import disk_under
from modules.hostside.probe_ways import container_arguments, sample_bytes
from modules.lab.model.weights import Tensor, serialize

HOSTSIDE = Path(page_cache.__file__).parent
GIB = 1024**3
DATA = serialize([Tensor("a", (1024, 1024), bytes(2 * 1024 * 1024)), Tensor("b", (100,), bytes(200))])


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Two files of weights, on the disk."""
    folder = tmp_path / "snapshot"
    folder.mkdir()
    for name in ("model-1.safetensors", "model-2.safetensors"):
        (folder / name).write_bytes(DATA)
    return folder


def probe(snapshot: Path, *words: str) -> tuple[int, str, str]:
    """Exit status, output, errors."""
    command = [sys.executable, str(HOSTSIDE / "probe_load.py"), "--directory", str(snapshot), *words]
    done = subprocess.run(
        [*command, "--probes", str(snapshot.parent / "probes")], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_it_measures_once_and_gives_what_is_kept(snapshot: Path) -> None:
    assert probe(snapshot, "--recall")[:2] == (0, "null")

    status, said, _ = probe(snapshot)

    assert status == 0
    answer = json.loads(said)
    assert answer["bytes"] == answer["sampled"] == 2 * len(DATA)
    assert answer["disk"] == disk_under(snapshot)
    assert min(answer["reading"]["cold"], answer["reading"]["warm"], answer["mapping"]["cold"]) > 0
    # Figures differ from one measurement to the next.
    assert json.loads(probe(snapshot)[1]) == answer
    assert json.loads(probe(snapshot, "--recall")[1]) == answer


def test_another_disk_or_other_files_are_measured_anew(snapshot: Path) -> None:
    probe(snapshot)
    (kept,) = (snapshot.parent / "probes").iterdir()
    document = json.loads(kept.read_text())
    other = {**document["about"], "disk": {"source": "/dev/other", "type": "ext4"}}
    kept.write_text(json.dumps({**document, "about": other}))
    assert probe(snapshot, "--recall")[1] == "null"
    kept.write_text(json.dumps(document))
    assert probe(snapshot, "--recall")[1] != "null"
    (snapshot / "model-3.safetensors").write_bytes(DATA)
    assert probe(snapshot, "--recall")[1] == "null"


def test_what_is_kept_is_told_in_a_report_for_as_long_as_it_holds(snapshot: Path) -> None:
    model, probes = snapshot.parents[1] / "model", snapshot.parent / "probes"
    (model / "snapshots").mkdir(parents=True)
    snapshot.rename(model / "snapshots" / "c")
    folder = model / "snapshots" / "c"
    assert kept_load(model, "c", None, "image", probes) == {"rates": None, "ways": None}
    measured = subprocess.run(
        [sys.executable, str(HOSTSIDE / "probe_load.py"), "--directory", str(folder), "--probes", str(probes)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    ways = probe_ways.kept_file(folder, "image", probes)
    ways.write_text(json.dumps({"about": {"disk": disk_under(folder), "image": "sha256:1"}, "answer": {"ways": {}}}))

    found = kept_load(model, "c", None, "image", probes)

    assert found == {"rates": json.loads(measured.stdout), "ways": {"ways": {}}}
    assert kept_load(model, "c", None, "another", probes)["ways"] is None
    assert kept_load(model, None, None, "image", probes) == {"rates": None, "ways": None}
    (folder / "model-3.safetensors").write_bytes(DATA)
    assert kept_load(model, "c", None, "image", probes)["rates"] is None


def test_weights_that_are_not_there_are_told(tmp_path: Path) -> None:
    assert probe(tmp_path, "--recall")[:2] == (0, "null")
    status, _, errors = probe(tmp_path)
    assert status == 1
    assert f"{tmp_path}: no weight file" in errors


def test_the_sample_takes_of_every_file_in_proportion() -> None:
    sizes = {Path("/a"): 10 * BLOCK, Path("/b"): 30 * BLOCK, Path("/c"): 100}

    found = sample(sizes, 20 * BLOCK)

    taken = {path: sum(each.size for each in found if each.path == path) for path in sizes}
    assert taken[Path("/a")] == 4 * BLOCK
    assert taken[Path("/b")] == 14 * BLOCK
    assert taken[Path("/c")] == 100
    assert sum(each.size for each in sample(sizes, 10**12)) == sum(sizes.values())
    assert sample({}, 10) == []


def test_every_way_of_reading_reads_all_and_leaves_no_page_cache(snapshot: Path) -> None:
    files = {path: path.stat().st_size for path in snapshot.iterdir()}
    extents = sample(files, GIB)
    for reading in (by_reading, by_mapping):
        cold, warm = cold_and_warm(reading, extents, 10)
        assert cold > 0
        assert warm > 0
    rate = direct(extents, 10)
    assert rate is None or rate > 0


def test_the_page_cache_is_filled_and_emptied(snapshot: Path) -> None:
    path = snapshot / "model-1.safetensors"
    size = path.stat().st_size
    page_cache.fill(str(path))
    assert page_cache.cached(str(path)) >= size
    if os.statvfs(path).f_fsid == 0:
        pytest.skip("a tmpfs is its own page cache")
    page_cache.drop(path)
    assert page_cache.cached(str(path)) == 0


def test_the_disk_is_told_by_its_mount_and_its_model(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"22 1 0:99 / /other rw - ext4 /dev/sda1 rw\n23 1 {name} / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
    )
    devices = tmp_path / "devices"
    assert disk_under(tmp_path, mounts, devices) == {"source": "/dev/nvme0n1p2", "type": "ext4"}
    (devices / name / "device").mkdir(parents=True)
    (devices / name / "device" / "model").write_text("ESL04TBTLCZ  \n")
    assert disk_under(tmp_path, mounts, devices)["model"] == "ESL04TBTLCZ"


def test_a_trial_takes_no_more_than_a_quarter_of_the_free_memory() -> None:
    sizes = {Path("/a"): 4 * GIB, Path("/b"): 4 * GIB}

    assert sample_bytes(sizes, 100 * GIB) == 8 * GIB
    assert sample_bytes(sizes, 20 * GIB) == 5 * GIB
    with pytest.raises(ValueError, match=r"loading 4.0 GiB on trial needs 16.0 GiB of free memory, 12.0 GiB are free"):
        sample_bytes(sizes, 12 * GIB)
    assert chosen({"b": 4, "a": 4, "c": 1}, 5) == ["a"]
    assert chosen({"b": 4, "a": 9}, 5) == ["a"]


def test_the_trial_sees_weights_and_programs_read_only_and_no_network() -> None:
    wish = argparse.Namespace(image="i", hub=Path("/h/hub"), device="cuda:0", gpus="all")

    words = container_arguments(wish, "n", ["/h/hub/x"], 5)

    assert "--network none --gpus all --volume /h/hub:/h/hub:ro" in " ".join(words)
    assert words[-6:] == [str(HOSTSIDE / "load_ways.py"), "--device", "cuda:0", "--bytes", "5", "/h/hub/x"]


def test_a_way_that_fails_is_told_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def apart(name: str, _: list[str]) -> dict[str, object]:
        asked.append(name)
        return {"error": "no such package"} if name == "fastsafetensors" else {"cold": 1.0, "warm": 2.0, "cached": 0.0}

    monkeypatch.setattr(load_ways, "apart", apart)

    found = all_turns(["safetensors-copy", "fastsafetensors"], 2, [])

    assert found == {
        "safetensors-copy": {"cold": [1.0, 1.0], "warm": [2.0, 2.0], "cached": [0.0, 0.0]},
        "fastsafetensors": {"error": "no such package"},
    }
    assert asked == ["safetensors-copy", "fastsafetensors", "safetensors-copy"]


def test_a_way_whose_packages_are_not_here_says_so(snapshot: Path) -> None:
    words = ["--device", "cpu", "--rounds", "1", "--only", "safetensors-copy", *map(str, snapshot.iterdir())]
    done = subprocess.run(
        [sys.executable, str(HOSTSIDE / "load_ways.py"), *words], capture_output=True, text=True, check=True
    )

    found = json.loads(done.stdout)

    assert found["device"] == "cpu"
    assert found["bytes"] == 2 * len(DATA)
    assert "No module named 'torch'" in found["ways"]["safetensors-copy"]["error"]
    assert {way.loader for way in loaders.WAYS.values()} == set(loaders.LOADERS)
