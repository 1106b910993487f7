"""A lab that is too large for this machine's kernel is refused before it boots."""

from __future__ import annotations

from modules.lab.watches import PER_HOST, shortfall


def test_as_many_hosts_as_the_limit_allows() -> None:
    assert shortfall(12, limit=128, used=128 - 12 * PER_HOST) is None


def test_one_more_is_refused_with_a_limit_that_suffices() -> None:
    told = shortfall(13, limit=128, used=32)

    assert told is not None
    assert "104 inotify instances; 32 of this machine's 128 are in use" in told
    assert "sysctl fs.inotify.max_user_instances=256" in told
