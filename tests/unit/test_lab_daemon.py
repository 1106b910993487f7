"""Two labs at once: what one still needs of the daemon, another that goes down does not take away."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.lab import daemon, down
from modules.lab.layout import Layout
from modules.lab.pieces.piece import in_use, unused


@pytest.fixture(autouse=True)
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a lab that goes down has taken away: the host image, the daemon."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("modules.lab.layout.ROOT", tmp_path)
    gone: list[str] = []

    def image(_client: object) -> list[str]:
        gone.append("image")
        return []

    def stopped(_client: object) -> bool:
        gone.append("daemon")
        return True

    monkeypatch.setattr(daemon, "connect", object)
    monkeypatch.setattr(daemon, "stop_if_ours", stopped)
    monkeypatch.setattr(down, "remove_images", image)
    monkeypatch.setattr(down, "_remove_from_docker", lambda *_: [])
    return gone


def test_the_last_lab_takes_the_daemon_along(taken: list[str]) -> None:
    down.down(Layout.named("one"))

    assert taken == ["image", "daemon"]


def test_a_lab_that_is_coming_up_keeps_them(taken: list[str]) -> None:
    with in_use(daemon.IN_USE), in_use(daemon.IN_USE):
        down.down(Layout.named("one"))

    assert taken == []


def test_only_one_takes_down_at_a_time() -> None:
    with unused(daemon.IN_USE) as alone:
        assert alone
        with unused(daemon.IN_USE) as other:
            assert not other
