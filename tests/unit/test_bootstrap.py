"""The first login, as far as it needs no host: keys, what hosts and sudo say, who is asked what."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from inventory.first_login import wanted
from modules.bootstrap.answers import QUESTIONS, Visited, check_python, sudo_refusal, visited
from modules.bootstrap.connection import Route
from modules.bootstrap.host_keys import HostKey, Trust, known_keys, place, remember, trust
from modules.bootstrap.meeting import Met, confirmation, unconfirmed
from modules.bootstrap.own_keys import make_key, own_keys
from modules.bootstrap.passwords import Passwords
from modules.bootstrap.refusal import RefusedError
from modules.bootstrap.settings import fleet_to_begin
from modules.fleet import FleetError, load_fleet
from modules.fleet.fleet import Fleet
from modules.spec.fleet import ResolvedHost, Ssh
from modules.spec.settings import HostSettings

KEY = HostKey("ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIMx7ysVdsp+B9lGEjJO94Hgd5yICdfJDS6VBF+vcqLhX")
OTHER = HostKey("ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIEkixRhg3EFLBpu2mzyf5TNKa9qSb2khYjVRjO67wnVX")
FLEET = (
    "fleet: office\nssh: {user: anna, key: own/mine.key, known_hosts: own/known}\nhosts: {spark-1: {}, spark-2: {}}\n"
)


def resolved(name: str = "spark-1", **ssh: str) -> ResolvedHost:
    return ResolvedHost(
        name=name,
        address="10.0.0.11",
        ssh=Ssh.model_validate({"user": "anna", **ssh}),
        groups=(),
        settings=HostSettings(),
    )


def test_a_fingerprint_is_as_ssh_keygen_prints_it(tmp_path: Path) -> None:
    make_key(tmp_path / "id")
    printed = subprocess.run(
        ["ssh-keygen", "-lf", str(tmp_path / "id")], capture_output=True, text=True, check=True
    ).stdout.split()
    kind, text = (tmp_path / "id.pub").read_text().split()[:2]
    key = HostKey(kind, text)
    assert [key.fingerprint, f"({key.short_kind})"] == [printed[1], printed[-1]]


@pytest.mark.parametrize(
    ("known", "named", "verdict"),
    [
        ([KEY], None, Trust.KNOWN),
        ([], None, Trust.NEW),
        ([OTHER], None, Trust.CHANGED),
        ([], KEY.fingerprint, Trust.NAMED),
        ([KEY], OTHER.fingerprint, Trust.CHANGED),
        ([], OTHER.fingerprint, Trust.CHANGED),
        ([OTHER], KEY.fingerprint, Trust.CHANGED),
    ],
)
def test_no_other_key_than_the_known_or_the_named_one_is_trusted(
    known: list[HostKey], named: str | None, verdict: Trust
) -> None:
    assert trust(KEY, known, named) is verdict


def test_known_hosts_are_read_as_openssh_writes_them_and_added_to(tmp_path: Path) -> None:
    file = tmp_path / "ssh" / "known_hosts"
    remember(file, [(place("10.0.0.11", 22), KEY), (place("10.0.0.11", 2222), OTHER)])
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(f"# a comment\n@revoked * {OTHER.kind} {OTHER.text}\n{file.read_text()}".rstrip("\n"))
    remember(file, [("spark-2", OTHER)])
    subprocess.run(["ssh-keygen", "-H", "-f", str(file)], check=True, capture_output=True)
    file.write_text(f"{file.read_text()}nonsense\n")
    assert known_keys([file], "10.0.0.11") == [KEY]
    assert known_keys([tmp_path / "none", file], "[10.0.0.11]:2222") == [OTHER]
    assert known_keys([file], "spark-2") == [OTHER]
    assert known_keys([file], "spark-3") == []


def test_one_question_lists_every_new_key_and_tells_which_are_the_same(tmp_path: Path) -> None:
    met = [
        Met(resolved(name), Route("10.0.0.11", 22, "10.0.0.11", (tmp_path,)), key, Trust.NEW)
        for name, key in (("spark-1", KEY), ("spark-2", OTHER), ("spark-3", KEY))
    ]
    text = "\n".join(confirmation(met))
    assert text.count("SHA256:") == 3
    assert "ssh-keygen -lf" in text
    assert "spark-1 and spark-3 show the same key" in text
    assert KEY.fingerprint in unconfirmed(met[0]).todo


def test_what_a_login_says_is_found_between_banners() -> None:
    said = subprocess.run(["sh", "-c", QUESTIONS], capture_output=True, text=True, check=True).stdout
    found = visited(f"Welcome to DGX Spark!\n{said}bye\n")
    assert found.python.startswith("3.")
    check_python(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("WARNING: Your password has expired.\nPassword change required but no TTY available.\n", "has expired"),
        ("This account is currently not available.\n", "runs no commands (it said: This account is currently not"),
        ("", "runs no commands (it said: nothing)"),
    ],
)
def test_a_login_that_runs_nothing_is_told(text: str, words: str) -> None:
    with pytest.raises(RefusedError, match=r".") as error:
        visited(text)
    assert words in str(error.value)


@pytest.mark.parametrize(("version", "words"), [("", "there is no python3"), ("3.8", "python3 is 3.8 on the host")])
def test_a_host_without_the_python_that_is_needed(version: str, words: str) -> None:
    with pytest.raises(RefusedError, match=words):
        check_python(Visited("anna", 1000, version, "asks"))


# As sudo 1.9 of Debian 12 and Ubuntu 24.04 says it, with LC_ALL=C.
@pytest.mark.parametrize(
    ("said", "asked", "words"),
    [
        ("bert is not in the sudoers file.\n", 1, "user bert may not use sudo"),
        ("bert is not in the sudoers file.  This incident will be reported.\n", 1, "user bert may not use sudo"),
        ("Sorry, user bert is not allowed to execute '/bin/sh' as root on spark-1.\n", 1, "user bert may not use sudo"),
        (
            "Sorry, try again.\nsudo: no password was provided\nsudo: 1 incorrect password attempt\n",
            1,
            "wrong password",
        ),
        ("sudo: sorry, you must have a tty to run sudo\n", 0, "sudo wants a terminal (requiretty)"),
        ("sudo: unable to resolve host\nsudo: error in /etc/sudo.conf\n", 0, "it said: sudo: error in /etc/sudo.conf"),
    ],
)
def test_why_sudo_gave_no_root(said: str, asked: int, words: str) -> None:
    assert words in str(sudo_refusal("bert", said, asked=asked))


def passwords(*typed: str) -> tuple[Passwords, list[str]]:
    asked: list[str] = []
    waiting = list(typed)

    def ask(question: str) -> str:
        asked.append(question)
        return waiting.pop(0)

    return Passwords(Fleet("office", Path("office.yaml"), {}), ask), asked


def test_enter_means_the_password_of_the_host_before() -> None:
    them, asked = passwords("one", "", "", "two", "three")
    assert next(them.of_login(resolved("spark-1"))) == "one"
    assert next(them.of_login(resolved("spark-2"))) == "one"
    assert list(them.of_login(resolved("spark-3"))) == ["one", "two", "three"]
    assert [question.startswith("Not taken.") for question in asked] == [False, False, False, True, True]
    assert "[Enter: as for the host before]" in asked[1]


def test_sudo_is_told_the_logins_password_first_and_its_own_only_if_it_must() -> None:
    them, asked = passwords("own", "again")
    turn = them.of_sudo(resolved(), "login")
    assert next(turn) == "login"
    assert asked == []
    assert next(turn) == "own"
    assert "which is not the login's" in asked[0]
    assert next(turn) == "again"
    assert next(turn, None) is None


def test_nobody_is_asked_where_there_is_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGIN", "of-login")
    path = tmp_path / "office.yaml"
    path.write_text("fleet: office\nsecrets: {login: {env: LOGIN}, none: {env: NONE}}\nhosts: {spark-1: {}}\n")
    them = Passwords(load_fleet(path), None)
    with pytest.raises(RefusedError, match="no terminal to ask at"):
        next(them.of_login(resolved()))
    assert list(them.of_login(resolved(password="login"))) == ["of-login"]
    assert list(them.of_sudo(resolved(password="login"), "of-login")) == ["of-login"]
    # Let in by the key, asked by sudo.
    assert list(them.of_sudo(resolved(password="login"), None)) == ["of-login"]
    assert list(them.of_sudo(resolved(password="none", sudo_password="login"), "typed")) == ["of-login"]
    with pytest.raises(RefusedError, match="secret none is missing: environment variable NONE"):
        list(them.of_login(resolved(password="none")))


def test_the_key_and_the_known_hosts_that_a_fleet_names_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "office.yaml"
    path.write_text(FLEET)
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    with pytest.raises(FleetError, match="make bootstrap makes it"):
        load_fleet()
    fleet, made = fleet_to_begin()
    assert sorted(made) == [tmp_path / "own" / "known", tmp_path / "own" / "mine.key"]
    assert [made_file.stat().st_mode & 0o777 for made_file in made] == [0o600, 0o600]
    keys = own_keys(fleet.hosts["spark-1"].ssh)
    assert keys is not None
    assert keys.line == (tmp_path / "own" / "mine.key.pub").read_text().strip()
    private = (tmp_path / "own" / "mine.key").read_bytes()
    assert fleet_to_begin()[1] == []
    assert (tmp_path / "own" / "mine.key").read_bytes() == private


def test_nothing_is_made_for_a_fleet_file_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "office.yaml"
    path.write_text(f"{FLEET}defaults: {{hardware: {{drivr: 580}}}}\n")
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    with pytest.raises(FleetError) as error:
        fleet_to_begin()
    assert [problem.what for problem in error.value.problems] == ["unknown key"]
    assert not (tmp_path / "own").exists()


def test_a_key_with_a_passphrase_is_refused_and_a_usual_one_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert own_keys(Ssh()) is None
    usual = tmp_path / ".ssh" / "id_ed25519"
    usual.parent.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a passphrase", "-f", str(usual)], check=True)
    assert own_keys(Ssh()) is None
    with pytest.raises(RefusedError, match="has a passphrase"):
        own_keys(Ssh(key=str(usual)))
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", str(usual.with_name("id_rsa"))], check=True)
    keys = own_keys(Ssh())
    assert keys is not None
    assert keys.line == usual.with_name("id_rsa.pub").read_text().strip()


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ("pyinfra inventory.py deploys/bootstrap.py -y", []),
        ("pyinfra inventory.py -y --limit spark-1 --limit=chat ./deploys/bootstrap.py", "--limit spark-1 --limit chat"),
        ("pyinfra inventory.py deploys/bootstrap.py --dry", None),
        ("pyinfra inventory.py deploys/spark.py -y", None),
    ],
)
def test_pyinfra_makes_the_first_login_for_that_deploy_alone(words: str, limits: str | list[str] | None) -> None:
    assert wanted(words.split()) == (limits.split() if isinstance(limits, str) else limits)


def test_a_key_is_never_written_over(tmp_path: Path) -> None:
    make_key(tmp_path / "id")
    before = (tmp_path / "id").read_bytes()
    with pytest.raises(FileExistsError):
        make_key(tmp_path / "id")
    assert (tmp_path / "id").read_bytes() == before
