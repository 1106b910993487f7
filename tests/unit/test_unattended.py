"""What a run that an operator has left tells of its hosts."""

from __future__ import annotations

from pathlib import Path

from modules.operations.unattended import GoesOn, parse_left
from modules.reporting.left_behind import Left, note_left, read_left

LISTED = """\
tinderbox-job-weights-0123456789ab.service loaded active     running Tinderbox: weights gpt-oss-tiny
tinderbox-job-tools-760185118ee6.service   loaded activating start   Tinderbox: tools
tinderbox-offer.service                    loaded active     running Tinderbox: images for the fleet
program ssh.service              sudo -H -n sh -c python3 /usr/local/lib/tinderbox/restart_docker.py
program session-7.scope          python3 /usr/local/lib/tinderbox/restart_docker.py
program session-7.scope          python3 /usr/local/lib/tinderbox/job.py status --wait 2 weights 0123456789ab
program tinderbox-gpt-oss-watch.service python3 /usr/local/lib/tinderbox/watch_service.py gpt-oss
program init.scope               /lib/systemd/systemd
program -                        [kworker/0:1]
""".splitlines()


def test_what_goes_on_is_told_by_name_and_nothing_else_is() -> None:
    found = parse_left(LISTED)
    assert found == [
        GoesOn("weights gpt-oss-tiny", "tinderbox-job-weights-0123456789ab.service"),
        GoesOn("tools", "tinderbox-job-tools-760185118ee6.service"),
        GoesOn("images for the fleet", "tinderbox-offer.service"),
        GoesOn("restart_docker.py", None),
    ]
    assert found[0].lines("spark-2") == [
        "weights gpt-oss-tiny: left running on spark-2 as tinderbox-job-weights-0123456789ab.service; the next run "
        "picks it up",
        "    look: tail -f /var/lib/tinderbox/jobs/weights-0123456789ab/log    stop: systemctl stop "
        "tinderbox-job-weights-0123456789ab.service",
    ]
    assert "ends by itself" in found[2].lines("spark-2")[0]
    assert found[3].lines("spark-2") == ["restart_docker.py: still at work on spark-2, and ends by itself"]


def test_a_job_that_was_told_to_stop_does_not_go_on() -> None:
    assert "tools" not in [one.title for one in parse_left(LISTED, "tinderbox-job-tools-760185118ee6.service")]
    assert parse_left([]) == []


def test_the_process_that_started_pyinfra_is_handed_it(tmp_path: Path) -> None:
    path = tmp_path / "left.json"
    assert read_left(path) == Left()
    assert read_left(path).text() == "interrupted; nothing that it began goes on on any host"
    note_left(path, Left(settled=False, by_host={"spark-1": ["x"]}))
    assert "perhaps these do, and the next run picks them up: spark-1: x" in read_left(path).text()
    left = Left(by_host={"spark-2": ["tinderbox-job-tools-1.service", "restart_docker.py"], "spark-1": ["b"]})
    note_left(path, left)
    assert read_left(path) == left
    assert left.text().endswith("spark-1: b; spark-2: tinderbox-job-tools-1.service, restart_docker.py")
    for damaged in ("", "[]", '{"settled": true}', '{"settled": 1, "by_host": 3}'):
        path.write_text(damaged)
        assert read_left(path) == Left()
