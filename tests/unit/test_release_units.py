"""The unit of every engine in every profile: as it was looked through, valid to systemd, exposed to little.

systemd-analyze (part of every Debian's and Ubuntu's systemd) is asked; without it these tests fail.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.release.build import build_release
from tests.unit.release_samples import IMAGE, service_plan, surroundings

KEPT = Path(__file__).parents[1] / "samples" / "units"
CATALOG = load_catalog()
UNITS = sorted((engine, profile) for engine, entry in CATALOG.engines.items() for profile in entry.profiles)
MODELS = {"vllm-cpu": "lab-gpt-oss-tiny", "llama-cpp": "gpt-oss-120b-gguf"}
# DGX OS 7 has Ubuntu 24.04's.
SYSTEMD = 255
UNIT = "tinderbox-gpt-oss.service"
# Of 10; a unit without any of it has 9.6. What is left: root, the network, /proc, /proc/sys and devices, each for
# a reason that stands in the unit.
MOST_EXPOSURE = 3.0


def text_of(engine: str, profile: str, systemd: int = SYSTEMD, **settings: object) -> str:
    plan = service_plan(engine=engine, model=MODELS.get(engine, "gpt-oss-120b"), profile=profile, **settings)
    return build_release(plan, surroundings(systemd=systemd, made_key="0123456789ab")).unit


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["systemd-analyze", *words], capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except FileNotFoundError:
        pytest.fail("systemd-analyze is not installed: apt install systemd")


def version() -> int:
    found = re.match(r"systemd (\d+)", analyze("--version").stdout)
    assert found is not None
    return int(found[1])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A file system in which nothing but what units refer to is."""
    units, programs = tmp_path / "etc/systemd/system", tmp_path / "usr/bin"
    units.mkdir(parents=True)
    programs.mkdir(parents=True)
    for name in ("docker", "python3"):
        (programs / name).touch(0o755)
    (units / "docker.service").write_text("[Unit]\nDescription=docker\n[Service]\nExecStart=/usr/bin/docker\n")
    for target in ("network-online", "multi-user", "sysinit", "basic", "shutdown"):
        (units / f"{target}.target").write_text(f"[Unit]\nDescription={target}\n")
    return tmp_path


def complaints(root: Path, text: str) -> str:
    (root / "etc/systemd/system" / UNIT).write_text(text)
    done = analyze("verify", "--man=no", f"--root={root}", UNIT)
    return (done.stdout + done.stderr).strip() or ("" if done.returncode == 0 else f"status {done.returncode}")


@pytest.mark.parametrize(("engine", "profile"), UNITS)
def test_a_unit_is_as_it_was_looked_through(engine: str, profile: str) -> None:
    """After a meant change: TINDERBOX_RENEW=1 pytest tests/unit/test_release_units.py; read what changed."""
    kept, text = KEPT / f"{engine}.{profile}.service", text_of(engine, profile)
    if os.environ.get("TINDERBOX_RENEW") == "1":
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(text)

    assert text == kept.read_text()


def test_no_unit_is_kept_that_is_none() -> None:
    assert sorted(path.name for path in KEPT.iterdir()) == sorted(f"{one}.{profile}.service" for one, profile in UNITS)


@pytest.mark.parametrize(("engine", "profile"), UNITS)
def test_systemd_has_nothing_to_say_of_a_unit(engine: str, profile: str, root: Path) -> None:
    # For the version that is asked, as on a host: an older one does not know all keys.
    assert complaints(root, text_of(engine, profile, version())) == ""


def test_nor_of_one_that_is_open_and_takes_a_key(root: Path) -> None:
    for listen in ("0.0.0.0", "::", "10.0.0.7", "fe80::1%eth0"):
        assert complaints(root, text_of("vllm", "latency", version(), listen=listen)) == ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("Restart=on-failure", "Restart=sometimes"),
        ("PrivateTmp=yes", "PrivateTemp=yes"),
        ("SystemCallFilter=~@privileged", "SystemCallFilter=~@priviledged"),
        ("/usr/bin/docker", "/usr/bin/doker"),
    ],
)
def test_it_would_say_so(wrong: str, said: str, root: Path) -> None:
    text = text_of("vllm", "latency", version())
    assert wrong in text
    assert complaints(root, text.replace(wrong, said)) != ""


@pytest.mark.parametrize(("engine", "profile"), UNITS)
def test_every_flag_of_a_unit_is_one_that_its_engine_knows(engine: str, profile: str) -> None:
    words = text_of(engine, profile).split(f" {IMAGE} ")[1].split("\n#")[0].split()
    flags = {word.removeprefix("--") for word in words if word.startswith("--")}
    assert {"host", "port"} <= flags
    assert flags <= CATALOG.flags[engine].names, flags - CATALOG.flags[engine].names


def test_it_exposes_the_host_to_little(root: Path) -> None:
    unit = root / UNIT
    unit.write_text(text_of("vllm-mxfp4", "latency", version()))
    done = analyze("security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSURE * 10:.0f}", str(unit))
    assert done.returncode == 0, done.stdout.splitlines()[-1:]
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found is not None
    assert float(found[1]) <= MOST_EXPOSURE


def test_the_engines_address_is_the_only_one_that_a_units_programs_may_ask() -> None:
    assert "\nIPAddressAllow=localhost\n" in text_of("vllm", "latency", listen="0.0.0.0")
    assert "\nIPAddressAllow=localhost 10.0.0.7\n" in text_of("vllm", "latency", listen="10.0.0.7")
    assert "\nIPAddressAllow=localhost fe80::1\n" in text_of("vllm", "latency", listen="fe80::1%eth0")
