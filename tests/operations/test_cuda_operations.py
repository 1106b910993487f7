"""What the CUDA stage's operations give a host, and when they leave it as it is."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from modules.facts.apt import AptPackage, AptVersions, PackageState
from modules.facts.cuda import CompileProbe, ProbedFeature, PtxasProbe, TritonPtxas
from modules.facts.files import FileState, FileStates
from modules.operations.apt import apt_package
from modules.operations.apt_source import AptSource
from modules.operations.cuda import PROFILE, compile_probe_passed, profile_settled, triton_ptxas_passed
from modules.spec.network import AptRepository
from tests.operations.stub_host import StubHost, commands_of

REPOSITORY = AptRepository(uri="https://apt.lab/cuda", key_url="https://apt.lab/key.asc", fingerprint="A" * 40)
NAMED, OF_THE_CATALOG = (AptSource("cuda", REPOSITORY, asked_for=yes) for yes in (True, False))
KEY = FileState("0" * 64, "644", "root:root")
WHOLE: dict[str, FileState | None] = {
    NAMED.file.path: FileState(hashlib.sha256((NAMED.file.content or "").encode()).hexdigest(), "644", "root:root"),
    NAMED.key_path: KEY,
}
NONE: dict[str, FileState | None] = {NAMED.file.path: None, NAMED.key_path: None}


def steps(host: StubHost, source: AptSource | None) -> list[str]:
    """What happens, in short."""
    short = []
    for command in commands_of(host, apt_package, package="cuda-toolkit-13-0", version="13.0.*", source=source):
        text = command.get_raw_value() if hasattr(command, "get_raw_value") else ""
        for word, step in (
            ("fetch_key.py", "key"),
            (".sources 644", "source"),
            ("install_package.py", "install"),
            ("exit 1", "refusal"),
        ):
            if word in text:
                short.append(f"{step} from {text.rsplit(' ', 1)[-1]}" if "--source" in text else step)
    return short


@pytest.mark.parametrize(
    ("installed", "files", "source", "happens"),
    [
        ("13.0.2-1", WHOLE, NAMED, []),
        ("13.0.2-1", NONE, OF_THE_CATALOG, []),
        ("13.0.2-1", NONE, None, []),
        ("13.0.2-1", NONE, NAMED, ["key", "source"]),
        ("13.0.2-1", {**WHOLE, NAMED.key_path: None}, NAMED, ["key", "source"]),
        ("13.0.2-1", {**WHOLE, NAMED.file.path: KEY}, OF_THE_CATALOG, ["key", "source"]),
        (None, WHOLE, NAMED, [f"install from {NAMED.file.path}"]),
        (None, NONE, NAMED, ["key", "source", f"install from {NAMED.file.path}"]),
        ("12.9.0-1", WHOLE, NAMED, [f"install from {NAMED.file.path}"]),
        (None, NONE, None, ["install"]),
    ],
)
def test_no_more_is_done_than_needed(
    installed: str | None, files: dict[str, FileState | None], source: AptSource | None, happens: list[str]
) -> None:
    host = StubHost({AptPackage: PackageState(installed, files, {})})
    assert steps(host, source) == happens
    assert bool(host.noops) is not bool(happens)


@pytest.mark.parametrize(
    ("offered", "happens"),
    [
        (("13.0.2-1", "13.0.1-1"), ["install"]),
        (("13.1.0-1",), ["key", "source", f"install from {NAMED.file.path}"]),
        ((), ["key", "source", f"install from {NAMED.file.path}"]),
        (None, ["key", "source", f"install from {NAMED.file.path}"]),
    ],
)
def test_the_catalogs_source_comes_only_where_the_host_has_none(
    offered: tuple[str, ...] | None, happens: list[str]
) -> None:
    host = StubHost({AptPackage: PackageState(None, NONE, {}), AptVersions: offered})
    assert steps(host, OF_THE_CATALOG) == happens


def test_a_source_that_the_host_has_already_is_used() -> None:
    theirs = "/etc/apt/sources.list.d/dgx.sources"
    found = PackageState(None, NONE, {theirs: ("URIs: https://apt.lab/cuda/",)})
    assert steps(StubHost({AptPackage: found}), NAMED) == [f"install from {theirs}"]


def test_the_key_is_asked_for_by_its_fingerprint() -> None:
    host = StubHost({AptPackage: PackageState("13.0.2-1", NONE, {})})
    command, _ = commands_of(host, apt_package, package="cuda-toolkit-13-0", version="*", source=NAMED)
    assert f"--fingerprint {'A' * 40}" in command.get_raw_value()


def test_a_host_that_gives_no_answer_is_refused() -> None:
    assert steps(StubHost({AptPackage: None}), NAMED) == ["refusal"]


@pytest.mark.parametrize(
    ("lines", "installed"),
    [
        (["installed ii  13.0.2-1", "files"], "13.0.2-1"),
        (["installed hi  13.0.2-1", "files"], "13.0.2-1"),
        (["installed rc  13.0.2-1", "files"], None),
        (["installed iF  13.0.2-1", "files"], None),
        (["installed un  ", "files"], None),
        (["files"], None),
    ],
)
def test_only_a_whole_package_counts_as_installed(lines: list[str], installed: str | None) -> None:
    assert AptPackage().parse(lines).installed == installed


def test_other_sources_are_found_in_the_answer() -> None:
    lines = ["mention /etc/apt/sources.list.d/x.list:deb https://a:1/b /", "files", "absent - - /k"]
    state = AptPackage().parse(lines)
    assert state.mentions == {"/etc/apt/sources.list.d/x.list": ("deb https://a:1/b /",)}
    assert state.files == {"/k": None}


FP4, TCGEN05 = "mma.kind::mxf4", "tcgen05.alloc"


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        ({FP4: ProbedFeature(True, None), TCGEN05: ProbedFeature(False, "ptxas: not supported")}, False),
        ({FP4: ProbedFeature(True, "ptxas: not supported")}, True),
        ({TCGEN05: ProbedFeature(False, None)}, True),
        ({}, True),
    ],
)
def test_the_probe_runs_until_it_has_passed(answer: dict[str, ProbedFeature], runs: bool) -> None:
    host = StubHost({CompileProbe: answer})
    commands = commands_of(host, compile_probe_passed, architecture="12.1f")
    assert [command.get_raw_value().split()[-2:] for command in commands] == [["--architecture", "12.1f"]] * runs
    assert bool(host.noops) is not runs


def test_no_kept_answer_is_an_empty_one() -> None:
    assert CompileProbe().parse(["null"]) == {}


@pytest.mark.parametrize(("mode", "changes"), [("644", 0), ("600", 1)])
def test_login_shells_get_the_toolkit(mode: str, changes: int) -> None:
    digest = hashlib.sha256((PROFILE.content or "").encode()).hexdigest()
    answer: Any = {PROFILE.path: FileState(digest, mode, "root:root")}
    assert len(commands_of(StubHost({FileStates: answer}), profile_settled)) == changes


def test_a_ptxas_that_knows_the_architecture_is_no_change() -> None:
    host = StubHost({PtxasProbe: TritonPtxas("/usr/local/cuda/bin/ptxas", None)})

    assert commands_of(host, triton_ptxas_passed, architecture="12.1f") == []
    assert host.noops == ["/usr/local/cuda/bin/ptxas assembles for 12.1f"]
    assert host.asked == [(PtxasProbe, {"architecture": "12.1f"})]


@pytest.mark.parametrize("found", [TritonPtxas(None, "not set"), TritonPtxas("/old/ptxas", "not defined")])
def test_any_other_ptxas_is_tried_where_it_fails_the_host(found: TritonPtxas) -> None:
    (command,) = commands_of(StubHost({PtxasProbe: found}), triton_ptxas_passed, architecture="12.1f")

    assert command.get_raw_value() == "python3 /usr/local/lib/tinderbox/ptxas_probe.py --architecture 12.1f"


def test_a_ptxas_that_was_not_told_refuses_the_host() -> None:
    (refusal,) = commands_of(StubHost({PtxasProbe: None}), triton_ptxas_passed, architecture="12.1f")

    assert "could not be read" in refusal.get_raw_value()


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        ('{"path": "/x/ptxas", "reason": null}', TritonPtxas("/x/ptxas", None)),
        ('{"path": null, "reason": "not set"}', TritonPtxas(None, "not set")),
        ("null", TritonPtxas(None, "our programs are not on the host yet")),
    ],
)
def test_the_ptxas_probes_answers_are_read(printed: str, answer: TritonPtxas) -> None:
    assert PtxasProbe().process([printed]) == answer
