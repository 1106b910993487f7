"""What a host tells of its journals, and how it is shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from modules.hostside.tell_journal import Teller, beginning, command, known_secrets, text_of
from modules.logs.line import Entry, document_of, entry_of, plain, shown, units_of
from modules.logs.since import SinceError, since_of

UNIT, WATCH = "tinderbox-gpt-oss.service", "tinderbox-watch@gpt-oss.service"
AT = 1_796_000_000_123_456


def line(message: Any, number: int = 1, **fields: Any) -> str:
    known = {"__CURSOR": f"s={number}", "__REALTIME_TIMESTAMP": str(AT), "_SYSTEMD_UNIT": UNIT, "MESSAGE": message}
    return json.dumps({**known, **fields})


def test_an_entry_is_told_with_its_unit_and_its_cursor() -> None:
    teller = Teller([UNIT, WATCH], [])
    assert teller.entry(line("ready", PRIORITY="6")) == {
        "at": AT, "unit": UNIT, "cursor": "s=1", "level": "6", "text": "ready",
    }  # fmt: skip
    # What systemd says of a unit.
    told = teller.entry(line("Started.", 2, _SYSTEMD_UNIT="init.scope", UNIT=WATCH))
    assert told is not None
    assert told["unit"] == WATCH
    assert teller.cursor == "s=2"
    assert teller.entry("-- No entries --") is None
    assert teller.cursor == "s=2"


def test_secrets_do_not_leave_the_host(tmp_path: Path) -> None:
    (tmp_path / "gpt-oss.key.env").write_text("VLLM_API_KEY=made-by-this-host\nSHORT=abc\n")
    secrets = known_secrets(str(tmp_path))
    assert secrets == ["made-by-this-host"]
    teller = Teller([UNIT], secrets)
    told = teller.entry(line("key made-by-this-host, HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz"))
    assert told is not None
    assert told["text"] == "key ***, HF_TOKEN=***"


def test_a_private_key_over_several_entries_is_one_mask_and_the_place_in_the_journal_is_kept() -> None:
    teller = Teller([UNIT], [])
    told = [
        teller.entry(line(text, number))
        for number, text in enumerate(["-----BEGIN PRIVATE KEY-----", "MIIE", "-----END PRIVATE KEY-----", "after"])
    ]
    assert [one.get("text") for one in told if one] == ["*** (a private key)", None, None, "after"]
    assert [one["cursor"] for one in told if one] == ["s=0", "s=1", "s=2", "s=3"]


@pytest.mark.parametrize(("message", "text"), [([104, 105, 255], "hi\ufffd"), (None, ""), (["a", "b"], "a\nb")])
def test_messages_that_are_no_text(message: Any, text: str) -> None:
    assert text_of(message) == text


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"lines": 50}, ["--lines=50"]),
        ({"lines": 50, "since": 12.5}, ["--since=@12.500000"]),
        ({"lines": 50, "since": 12.5, "cursor": "s=1;i=2"}, ["--after-cursor=s=1;i=2"]),
    ],
)
def test_a_journal_is_read_from_where_it_was_left(wish: dict[str, Any], words: list[str]) -> None:
    assert beginning(wish) == words
    assert command({"units": [UNIT]}, words, follow=True)[-4:] == [f"--unit={UNIT}", *words, "--follow", "--no-tail"]


def test_what_is_no_line_of_ours_is_left_out() -> None:
    assert document_of("Welcome to DGX Spark") is None
    assert document_of('{"at": 1, "te') is None
    assert document_of("[1]") is None
    assert document_of('{"alive": 1.0}') == {"alive": 1.0}


def test_an_entry_is_masked_again_by_what_the_fleet_knows() -> None:
    parts = units_of(["gpt-oss"])
    told = {"at": AT, "unit": WATCH, "cursor": "s=1", "text": "the key is orange-juice"}
    assert entry_of("spark-1", told, parts, ["orange-juice"]) == Entry("spark-1", "gpt-oss/watch", AT, "the key is ***")
    assert entry_of("spark-1", {"at": AT, "unit": UNIT, "cursor": "s=1"}, parts, []) is None


def test_every_line_says_when_and_whose() -> None:
    entry = Entry("spark-1", "gpt-oss", AT, "one\ntwo")
    assert shown(entry, 18, None, UTC).split("\n") == [
        "2026-11-30 00:53:20.123 spark-1 gpt-oss     one",
        "2026-11-30 00:53:20.123 spark-1 gpt-oss     two",
    ]
    assert "\x1b[36mspark-1 gpt-oss" in shown(entry, 0, 36, UTC)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07rest", "0;titlerest"),
        ("10 %\r50 %\r100 %", "100 %"),
        ("windows\r", "windows"),
        ("tab\tstays, so does ü", "tab\tstays, so does ü"),
    ],
)
def test_a_log_can_not_order_the_terminal_about(text: str, safe: str) -> None:
    assert plain(text) == safe


NOW = datetime(2026, 11, 30, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", "2026-11-30T01:28:30"),
        ("10m", "2026-11-30T01:20:00"),
        ("1.5h", "2026-11-30T00:00:00"),
        ("3 d", "2026-11-27T01:30:00"),
        ("today", "2026-11-30T00:00:00"),
        ("01:00", "2026-11-30T01:00:00"),
        ("21:30", "2026-11-29T21:30:00"),
        ("01:00:45", "2026-11-30T01:00:45"),
        ("1:00:45", "2026-11-30T01:00:45"),
        ("2026-11-28", "2026-11-28T00:00:00"),
        ("2026-11-28T10:00Z", "2026-11-28T10:00:00"),
        ("2026-11-28 10:00+02:00", "2026-11-28T08:00:00"),
    ],
)
def test_moments(text: str, moment: str) -> None:
    assert datetime.fromtimestamp(since_of(text, NOW), UTC) == datetime.fromisoformat(f"{moment}+00:00")


@pytest.mark.parametrize("text", ["", "yesterday-ish", "25:00", "1:60:00", "-5m", "10 parsecs"])
def test_a_moment_that_is_none_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(SinceError, match="forms are: 90s"):
        since_of(text, NOW)
