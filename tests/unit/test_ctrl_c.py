"""Ctrl-C ends what an operator runs with 130 and a word, at whatever moment: no traceback, and no verdict on hosts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from modules.adopt import __main__ as adopt
from modules.converge.early import in_order
from modules.converge.process import INTERRUPTED, Finished
from modules.lab.layout import ROOT
from modules.operations.asked import ADOPT_FOUND
from modules.reporting import __main__ as reporting

PROGRAMS = (
    "adopt", "bootstrap", "check", "converge", "discover", "disk", "importer", "logs", "reporting", "status",
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_heeds_it_before_it_imports_anything_else(program: str) -> None:
    text = (ROOT / "modules" / program / "__main__.py").read_text()
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert imports[0] == "from __future__ import annotations"
    assert imports[1].startswith("from modules.converge.early import ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_has_nothing_to_say_of_it_ends_in_order(number: signal.Signals) -> None:
    code = (
        "import os, typer\n"
        "from modules.converge.early import in_order\n"
        "@in_order()\n"
        "def main(word: str = 'x') -> None:\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "typer.run(main)\n"
    )
    # In a test's session Ctrl-C may be ignored.
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "interrupted\n")


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet whose hosts are not asked to the end."""
    path = tmp_path / "fleet.yaml"
    path.write_text("fleet: office\nhosts: {spark-1: {}, spark-2: {}}\n")
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    monkeypatch.setenv(ADOPT_FOUND, "")
    for program in (adopt, reporting):
        monkeypatch.setattr(program, "run_pyinfra", lambda *_, **__: Finished(INTERRUPTED, "", 1.0))
    monkeypatch.setattr(adopt, "heed", lambda: None)


@pytest.mark.usefixtures("cut")
def test_a_host_that_adopt_had_no_time_for_is_not_called_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught:
        adopt.main()
    assert caught.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "interrupted; nothing was written\n"


@pytest.mark.usefixtures("cut")
def test_a_report_that_was_cut_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "write_all", None)
    monkeypatch.setattr(reporting, "note_silent", None)
    former = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    try:
        with pytest.raises(SystemExit) as caught:
            reporting.main()
    finally:
        for one, handler in zip((signal.SIGINT, signal.SIGTERM), former, strict=True):
            signal.signal(one, handler)
    assert caught.value.code == INTERRUPTED


def test_what_is_not_interrupted_goes_its_way() -> None:
    former = signal.getsignal(signal.SIGTERM)
    with in_order():
        pass
    signal.signal(signal.SIGTERM, former)
