"""What diagnosis says of a unit that is down without a fault."""

from __future__ import annotations

from roles.diagnose import unit_lines


def test_a_server_that_was_stopped_is_told_with_the_way_to_start_it() -> None:
    (line,) = unit_lines({"ActiveState": "inactive", "SubState": "dead"}, "gpt-oss")
    assert line.startswith("tinderbox-gpt-oss.service is inactive (dead)")
    assert "make converge" in line


def test_other_states_are_told_plainly_and_a_host_without_service_has_none() -> None:
    running = {"ActiveState": "active", "SubState": "running"}
    assert unit_lines(running, "gpt-oss") == ["tinderbox-gpt-oss.service is active (running)"]
    assert unit_lines(running, None) == []
    assert unit_lines({}, "gpt-oss") == []
