"""The nightly check: its units, and what it writes down."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from modules.nightly.outcome import Night
from roles.nightly.units import Nightly, service_text, timer_text

WISH = Nightly("office", "/home/a b/office.yaml", "anna", "/home/a b/tinderbox", "/home/a b/tinderbox/.venv/bin/python",
               "*-*-* 03:00:00", ["/home/a b/tinderbox", "/run/lock"], "/var/lib/metrics")  # fmt: skip


def drift(**states: str) -> dict[str, Any]:
    return {"hosts": {name.replace("_", "-"): {"state": state} for name, state in states.items()}}


def night(drift_status: int, gate_status: int | None, document: dict[str, Any] | None) -> Night:
    return Night("office", 1000.4, 1060.6, drift_status, gate_status, document)


def test_the_service_is_run_by_its_user_hardened_and_without_a_secret() -> None:
    text = service_text(WISH)
    assert 'ExecStart="/home/a b/tinderbox/.venv/bin/python" -m modules.nightly --metrics /var/lib/metrics' in text
    assert 'Environment="TINDERBOX_FLEET=/home/a b/office.yaml"' in text
    assert 'ReadWritePaths="-/home/a b/tinderbox" -/run/lock\n' in text
    assert "WorkingDirectory=/home/a b/tinderbox\n" in text
    for line in ("User=anna", "ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "Type=oneshot"):
        assert f"\n{line}\n" in text
    quiet = Nightly(**{**vars(WISH), "gate": False, "metrics": None})
    assert service_text(quiet).count("-m modules.nightly --no-gate\n") == 1


@pytest.mark.parametrize("name", ["plain", "a b", "50%", "it's", 'a "b"', "a$b", "back\\slash", "ümlaut"])
def test_any_folder_reaches_systemd_as_it_is(name: str) -> None:
    """By systemd's rules: a whole line for the folder, words that may be quoted for lists, % for its own in both."""
    root = f"/home/{name}/tinderbox"
    text = service_text(replace(WISH, root=root, file=f"{root}/f.yaml", python=f"{root}/python", writable=[root]))
    said = dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)
    assert said["WorkingDirectory"].replace("%%", "%") == root
    assert words_of(said["ReadWritePaths"]) == [f"-{root}"]
    assert words_of(said["Environment"])[0] == f"TINDERBOX_FLEET={root}/f.yaml"
    # In a command alone $ is systemd's own, too.
    assert words_of(said["ExecStart"])[0].replace("$$", "$") == f"{root}/python"


def words_of(line: str) -> list[str]:
    """What extract_first_word of systemd makes of a list, and its specifiers of that."""
    return [one.replace("%%", "%") for one in shlex.split(line)]


def test_the_timer_makes_up_for_a_night_that_was_slept_through() -> None:
    lines = timer_text(WISH).splitlines()
    assert {"OnCalendar=*-*-* 03:00:00", "Persistent=true", "RandomizedDelaySec=30min"} <= set(lines)


def test_a_good_night_ends_with_0() -> None:
    good = night(0, 0, drift(spark_1="same", spark_2="same"))
    assert good.status == 0
    assert good.line() == "fleet office: drift none, gate passed"
    assert 'tinderbox_drift_hosts{fleet="office"} 0\n' in good.metrics()
    assert 'tinderbox_nightly_last_run_timestamp_seconds{fleet="office"} 1061\n' in good.metrics()


def test_drift_and_a_failed_gate_are_told_and_have_a_status() -> None:
    bad = night(2, 1, drift(spark_1="differs", spark_2="refused", spark_3="unknown", spark_4="same"))
    assert bad.status == 2
    assert bad.document()["drift"] == {
        "status": 2, "verdict": "found", "differs": ["spark-1"], "refused": ["spark-2"], "unknown": ["spark-3"]
    }  # fmt: skip
    assert 'tinderbox_drift_hosts{fleet="office"} 2\n' in bad.metrics()
    assert 'tinderbox_drift_unknown_hosts{fleet="office"} 1\n' in bad.metrics()
    assert bad.line() == (
        "fleet office: drift found (differs: spark-1; refused: spark-2; unknown: spark-3), gate FAILED"
    )
    assert night(0, 1, drift(spark_1="same")).status == 1


def test_what_was_not_looked_at_is_given_no_figure() -> None:
    broken = night(1, None, None)
    assert broken.status == 1
    assert "tinderbox_drift_hosts" not in broken.metrics()
    assert "tinderbox_nightly_gate_status" not in broken.metrics()
    assert broken.line() == "fleet office: drift could not be looked for, gate not asked for"
