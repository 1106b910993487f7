"""The systemd unit's text."""

from __future__ import annotations

import pytest

from modules.hostside import memory_return
from modules.release.build import build_release
from modules.release.unit import START_ATTEMPTS, attempts_window_s, lines, word
from tests.unit.release_samples import service_plan, surroundings


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("--max-num-seqs", "--max-num-seqs"),
        ("a b", '"a b"'),
        ('{"mode": "NONE"}', '"{\\"mode\\": \\"NONE\\"}"'),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        ("back\\slash", '"back\\\\slash"'),
        (";", '";"'),
        ("", '""'),
        ("it's", '"it\'s"'),
    ],
)
def test_words_survive_systemd(text: str, written: str) -> None:
    assert word(text) == written


def test_one_flag_a_line() -> None:
    assert lines(("docker", "run", "--rm", "--name", "x", "img", "serve"), "img") == (
        "docker run \\\n    --rm \\\n    --name x \\\n    img serve"
    )


def unit(systemd: int = 255, **settings: object) -> str:
    return build_release(service_plan(**settings), surroundings(systemd=systemd)).unit  # type: ignore[arg-type]


def directives(text: str) -> dict[str, str]:
    rows = [line for line in text.splitlines() if "=" in line and not line.startswith((" ", "#"))]
    return {name: value for name, _, value in (row.partition("=") for row in rows)}


def test_the_server_depends_on_docker_and_comes_back_after_a_reboot() -> None:
    found = directives(unit())
    assert found["Requires"] == "docker.service"
    assert {"docker.service", "network-online.target"} <= set(found["After"].split())
    assert found["WantedBy"] == "multi-user.target"


def test_a_crash_loop_ends() -> None:
    found = directives(unit())
    assert found["Restart"] == "on-failure"
    assert int(found["StartLimitBurst"]) == START_ATTEMPTS
    # Were the window shorter than the attempts that must fall into it, systemd would never count to the limit.
    slowest = int(found["TimeoutStartSec"]) + int(found["TimeoutStopSec"]) + int(found["RestartMaxDelaySec"])
    assert int(found["StartLimitIntervalSec"]) > (START_ATTEMPTS - 1) * slowest


def test_the_window_grows_with_the_start() -> None:
    assert attempts_window_s(1200) - attempts_window_s(600) == START_ATTEMPTS * 600


def test_the_pause_grows_only_where_systemd_knows_how() -> None:
    assert "RestartSteps=" in unit(systemd=254)
    assert "RestartSteps=" not in unit(systemd=252)


def test_active_means_that_a_reply_was_generated() -> None:
    text = unit(engine="vllm-mxfp4", model="gpt-oss-120b")
    assert "ExecStartPost=/usr/bin/python3 /usr/local/lib/tinderbox/await_ready.py" in text
    assert "--refused-log=" in text
    # The program gives up before systemd does, so that the reason is told.
    found = directives(text)
    assert int(found["TimeoutStartSec"]) > 20 * 60
    assert "--timeout 1200" in text


def test_leftovers_of_our_own_name_only_are_removed() -> None:
    text, removal = unit(), "-/usr/bin/docker rm --force tinderbox-gpt-oss"
    assert f"\nExecStartPre={removal}\n" in text
    assert f"\nExecStopPost={removal}\n" in text


def test_no_start_without_room() -> None:
    gate = (
        "ExecStartPre=/usr/bin/python3 /usr/local/lib/tinderbox/memory_gate.py /etc/tinderbox/gpt-oss.memory.json "
        "--beside /etc/tinderbox/services.json --before /run/tinderbox/gpt-oss.before\n"
    )
    text = unit()
    assert gate in text
    assert text.index(gate) < text.index("ExecStart=")


def test_the_load_is_guarded_by_the_services_own_memory_file() -> None:
    assert "--memory /etc/tinderbox/gpt-oss.memory.json" in unit()


def test_a_stop_ends_with_the_memory_back_and_never_fails_for_it() -> None:
    text = unit()
    wait = "ExecStopPost=-/usr/bin/python3 /usr/local/lib/tinderbox/memory_return.py /etc/tinderbox/gpt-oss.memory.json"
    # Only once the container is gone.
    assert text.index("ExecStopPost=-/usr/bin/docker rm") < text.index(wait)
    assert int(directives(text)["TimeoutStopSec"]) > memory_return.WAIT_S


def watch(**settings: object) -> str:
    return build_release(service_plan(**settings), surroundings()).watch  # type: ignore[arg-type]


def test_a_ready_server_is_watched_until_it_ends() -> None:
    begins = "\nExecStartPost=-/usr/bin/systemctl start --no-block tinderbox-watch@gpt-oss.service\n"
    text = unit()
    assert text.index("await_ready.py") < text.index(begins)
    # systemd starts a unit that failed again at once, without its pause, where another one is to be started with it.
    assert "tinderbox-watch" not in text.split("[Service]")[0]
    found = directives(watch())
    # Together these two mean: only while the service is active.
    assert found["BindsTo"] == found["After"] == "tinderbox-gpt-oss.service"
    assert "--every 60" in watch()
    assert "--checks 3" in watch()


def test_its_rate_is_the_fleet_files_and_part_of_the_release() -> None:
    assert "--every 7.5 \\\n    --checks 2" in watch(watchdog={"every_s": 7.5, "checks": 2})
    plan = service_plan(watchdog={"checks": 2})
    assert build_release(plan, surroundings()).id != build_release(service_plan(), surroundings()).id


def test_nobody_watches_where_that_is_not_wanted() -> None:
    assert watch(watchdog={"enabled": False}) == ""
    assert "tinderbox-watch@" not in unit(watchdog={"enabled": False})


def test_the_watch_reads_the_key_from_its_file() -> None:
    plan = service_plan(api_key="key")
    made = build_release(plan, surroundings(secrets={"VLLM_API_KEY": "sk-hidden"}))
    assert "--secret-file /etc/tinderbox/gpt-oss.secret.env" in made.watch
    assert "sk-hidden" not in made.watch
