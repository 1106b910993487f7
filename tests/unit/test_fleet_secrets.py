"""Secrets: never in the file, never in a message, and found before any host is contacted."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from modules.fleet import FleetError, load_fleet
from modules.fleet.needs import WITH_SECRETS, needs_secrets
from modules.lab.layout import ROOT

# Made up, in the forms that their issuers use; put together here so that no scanner takes them for real ones.
HUB_TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"
API_KEY = "sk-" + "proj-abcdefghijklmnopqrstuvwx"
NVIDIA_KEY = "nvapi-" + "0123456789abcdefghijABCDEFGHIJ"
PLAIN = "correct-horse-battery-staple"

FLEET = """\
fleet: office
secrets:
  api-key: {reference}
defaults:
  services:
    gpt-oss:
      engine: vllm-mxfp4
      model: gpt-oss-120b
      listen: 0.0.0.0
      api_key: api-key
hosts:
  spark-1: {{address: 10.0.0.11}}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(dedent(text))
    return path


def told(path: Path) -> list[str]:
    with pytest.raises(FleetError) as caught:
        load_fleet(path)
    return str(caught.value).splitlines()


def missing(path: Path) -> list[str]:
    fleet = load_fleet(path)
    with pytest.raises(FleetError) as caught:
        fleet.fetch_needed()
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        (API_KEY, "secrets.api-key"),
        (PLAIN, "secrets.api-key"),
        ("12345678", "secrets.api-key"),
        (f"[{PLAIN}]", "secrets.api-key"),
        (f"{{{PLAIN}}}", "secrets.api-key.(hidden)"),
        (f"{{{API_KEY}: {{env: HOME}}}}", "secrets.api-key.(hidden)"),
        (f"{{value: {PLAIN}}}", "secrets.api-key.value"),
        (f"{{vaule: {PLAIN}}}", "secrets.api-key.vaule"),
        (f"{{env: {API_KEY}}}", "secrets.api-key.env"),
        (f"{{env: {PLAIN}}}", "secrets.api-key.env"),
        (f"{{command: [echo, {NVIDIA_KEY}]}}", "secrets.api-key.command[1]"),
    ],
)
def test_secret_written_as_its_own_reference_is_refused_unseen(reference: str, key: str, tmp_path: Path) -> None:
    path = write(tmp_path, FLEET.format(reference=reference))

    lines = told(path)

    assert lines[0].startswith(f"{path}:3: {key}: ")
    for value in (API_KEY, PLAIN, NVIDIA_KEY, "12345678"):
        assert value not in "\n".join(lines)


@pytest.mark.parametrize("value", [API_KEY, HUB_TOKEN, PLAIN, "hunter2"])
def test_api_key_that_is_no_secrets_name_is_refused_unseen(value: str, tmp_path: Path) -> None:
    text = FLEET.format(reference="{env: HOME}").replace("api_key: api-key", f"api_key: {value}")
    path = write(tmp_path, text)

    lines = told(path)

    assert len(lines) == 1
    assert lines[0].startswith(f"{path}:10: defaults.services.gpt-oss.api_key: ")
    assert value not in lines[0]


def test_mistyped_name_of_a_secret_gets_the_right_one(tmp_path: Path) -> None:
    path = write(tmp_path, FLEET.format(reference="{env: HOME}").replace("api_key: api-key", "api_key: api-kye"))

    assert told(path) == [
        f"{path}:10: defaults.services.gpt-oss.api_key: "
        "this is no name of a secret of this fleet; did you mean api-key?"
    ]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (f"environment: {{HF_TOKEN: {HUB_TOKEN}}}", "environment.HF_TOKEN"),
        (f"environment: {{HF_TOKEN: {PLAIN}}}", "environment.HF_TOKEN"),
        (f"environment: {{SOME_API_KEY: {PLAIN}}}", "environment.SOME_API_KEY"),
        (f"environment: {{DB_PASSWORD: {PLAIN}}}", "environment.DB_PASSWORD"),
        (f"environment: {{NOTE: 'use {API_KEY} here'}}", "environment.NOTE"),
        (f"environment: {{INDEX: 'https://me:{PLAIN}@pypi.example.net/simple'}}", "environment.INDEX"),
        (f"flags: {{api-key: {PLAIN}}}", "flags.api-key"),
        (f"flags: {{hf-token: {HUB_TOKEN}}}", "flags.hf-token"),
        (f"flags: {{override: [a, {HUB_TOKEN}]}}", "flags.override[1]"),
        (f"engine: {API_KEY}", "engine"),
        (f"model: {{repository: a/b, token: {HUB_TOKEN}}}", "model.token"),
    ],
)
def test_secret_anywhere_in_the_settings_is_refused_unseen(line: str, key: str, tmp_path: Path) -> None:
    path = write(
        tmp_path, f"fleet: office\ndefaults:\n  services:\n    gpt-oss:\n      {line}\nhosts: {{spark-1: {{}}}}\n"
    )

    lines = told(path)

    about_it = [text for text in lines if text.startswith(f"{path}:5: defaults.services.gpt-oss.{key}: ")]
    assert len(about_it) == 1
    assert "under secrets:" in about_it[0]
    for value in (HUB_TOKEN, API_KEY, PLAIN):
        assert value not in "\n".join(lines)


@pytest.mark.parametrize(
    "line",
    [
        "environment: {TOKENIZERS_PARALLELISM: 'false'}",
        "environment: {TIKTOKEN_ENCODINGS_BASE: /etc/tiktoken}",
        "environment: {MAX_TOKENS: 4096}",
        "flags: {max-num-batched-tokens: 8192}",
        "flags: {tokenizer: openai/gpt-oss-120b}",
        "flags: {served-by: task-force-of-sparks-and-more}",
    ],
)
def test_words_that_only_sound_secret_are_taken(line: str, tmp_path: Path) -> None:
    text = f"""\
        fleet: office
        defaults:
          services:
            gpt-oss:
              engine: vllm-mxfp4
              model: gpt-oss-120b
              {line}
        hosts: {{spark-1: {{}}}}
        """

    assert load_fleet(write(tmp_path, text)).hosts


@pytest.mark.parametrize(
    ("reference", "looked"),
    [
        ("{env: TINDERBOX_TEST_UNSET}", "environment variable TINDERBOX_TEST_UNSET: empty or not set; set it"),
        ("{file: none.txt}", "none.txt: No such file or directory; write the secret into it"),
        ("{file: empty.txt}", "empty.txt: empty or not set; write the secret into it"),
        ("{file: two-lines.txt}", "two-lines.txt: several lines; give the secret alone"),
        ("{command: [tinderbox-no-such-program]}", "no such program; install it, or correct the command"),
        ("{command: [sh, -c, 'echo leaked; exit 3']}", "exit status 3; run it yourself to see why"),
        ("{command: ['true']}", "command `true`: empty or not set; run it yourself to see why"),
    ],
)
def test_missing_secret_is_refused_with_where_it_was_looked_for(
    reference: str, looked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TINDERBOX_TEST_UNSET", raising=False)
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "two-lines.txt").write_text("one\ntwo\n")
    path = write(tmp_path, FLEET.format(reference=reference))

    (line,) = missing(path)

    assert line.startswith(f"{path}:3: secrets.api-key: secret api-key is missing: ")
    assert looked in line
    assert "leaked" not in line.replace("echo leaked", "")


def test_secrets_come_from_variable_file_and_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINDERBOX_TEST_KEY", PLAIN)
    (tmp_path / "key.txt").write_text(f"{PLAIN}\n")
    # The command runs in the fleet file's folder, whatever the operator's is.
    references = ("{env: TINDERBOX_TEST_KEY}", "{file: key.txt}", "{command: [cat, key.txt]}")
    for number, reference in enumerate(references):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "key.txt").write_text(f"  {PLAIN}\n")

        fleet = load_fleet(write(folder, FLEET.format(reference=reference)))

        assert fleet.secret("api-key") == PLAIN
        assert PLAIN not in repr(fleet)


def test_home_is_expanded_in_a_secrets_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "key.txt").write_text(PLAIN)
    monkeypatch.setenv("HOME", str(home))

    assert load_fleet(write(tmp_path, FLEET.format(reference="{file: ~/key.txt}"))).secret("api-key") == PLAIN


def test_secret_that_nothing_uses_is_not_fetched(tmp_path: Path) -> None:
    text = """\
        fleet: office
        secrets:
          unused: {command: [touch, fetched]}
        hosts: {spark-1: {}}
        """
    fleet = load_fleet(write(tmp_path, text))
    assert not (tmp_path / "fetched").exists()

    with pytest.raises(FleetError, match="secret unused is missing"):
        fleet.secret("unused")
    assert (tmp_path / "fetched").exists()


def test_secret_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    fleet = load_fleet(write(tmp_path, "fleet: office\nhosts: {spark-1: {}}\n"))

    with pytest.raises(FleetError, match="no such secret; declare it under secrets:"):
        fleet.secret("none")


def test_token_of_a_model_must_be_declared_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TINDERBOX_TEST_UNSET", raising=False)
    text = """\
        fleet: office
        secrets: {hub: {env: TINDERBOX_TEST_UNSET}}
        defaults:
          services:
            private:
              engine: vllm
              model:
                repository: acme/private
                size_gib: 10
                served_as: private
                source: ours
                token: TOKEN
        hosts: {spark-1: {}}
        """
    path = write(tmp_path, text.replace("TOKEN\n", "hubb\n"))
    assert told(path) == [
        f"{path}:12: defaults.services.private.model.token: "
        "this is no name of a secret of this fleet; did you mean hub?"
    ]

    (tmp_path / "other").mkdir()
    other = write(tmp_path / "other", text.replace("token: TOKEN\n", "token: hub\n"))
    assert "secret hub is missing: environment variable TINDERBOX_TEST_UNSET" in missing(other)[0]


def test_reading_a_fleet_file_fetches_no_secret(tmp_path: Path) -> None:
    path = write(tmp_path, FLEET.format(reference="{command: [sh, -c, 'touch fetched; echo value']}"))
    fleet = load_fleet(path)
    assert fleet.needed == ("api-key",)
    assert not (tmp_path / "fetched").exists()
    fleet.fetch_needed()
    assert (tmp_path / "fetched").exists()


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        (["inventory.py", "deploys/spark.py", "-y"], True),
        (["inventory.py", "deploys/turn.py"], True),
        (["inventory.py", "deploys/gateway.py", "--dry"], True),
        (["inventory.py", "deploys/gate.py"], True),
        (["inventory.py", "deploys/preflight.py"], False),
        (["inventory.py", "deploys/report.py", "-y"], False),
        (["inventory.py", "deploys/rollback.py", "-y"], False),
        (["inventory.py", "deploys/clean_weights.py", "-y"], False),
        (["inventory.py", "deploys/site.py", "deploys/weights.py"], True),
        (["inventory.py", "deploys/none.py"], False),
        (["inventory.py", "debug-inventory"], False),
        (["inventory.py", "exec", "--", "true"], False),
    ],
)
def test_secrets_are_fetched_for_deploys_that_hand_them_to_hosts(words: list[str], needs: bool) -> None:
    given = [str(ROOT / word) if word.startswith("deploys/") else word for word in words]
    assert needs_secrets(given) is needs


def test_every_role_that_knows_a_secrets_value_is_known_to_need_it() -> None:
    """Else a run that lacks one would find out in its middle. By what the roles' operations import."""
    asking = {
        path.stem
        for path in (ROOT / "modules/operations").glob("*.py")
        if re.search(r"\.secret\(|service_secrets", path.read_text())
    }
    assert "engine" in asking
    found = set()
    for path in (ROOT / "roles").rglob("*.py"):
        text = path.read_text()
        imported = set(re.findall(r"^from modules\.operations\.(\w+) import", text, re.MULTILINE))
        if imported & asking or ".secret(" in text:
            place = path.relative_to(ROOT / "roles").with_suffix("")
            found.add(".".join(part for part in place.parts if part != "__init__"))
    # What is missing on this machine keeps nobody from a diagnosis; the others take what needs none.
    assert found - {"adopt", "diagnose", "disk", "releases", "weights.clean", "weights.hashed"} <= WITH_SECRETS
