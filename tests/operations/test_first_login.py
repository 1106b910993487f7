"""The first login, against an sshd of this machine: what is sent to whom, and what each refusal leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from modules.bootstrap import first_login
from modules.bootstrap.connection import route_of, shown_key
from modules.bootstrap.first_login import Opened, open_host
from modules.bootstrap.host_keys import HostKey, remember
from modules.bootstrap.meeting import Met, meet
from modules.bootstrap.own_keys import OwnKeys, make_key
from modules.bootstrap.passwords import Passwords
from modules.bootstrap.refusal import RefusedError
from modules.fleet.fleet import Fleet
from modules.operations import managed_files
from modules.operations.bootstrap import sudoers_file
from modules.operations.managed_files import ManagedFile
from modules.spec.fleet import ResolvedHost, Ssh
from modules.spec.settings import HostSettings
from tests.operations.password_server import PASSWORD, USER, PasswordHost, password_host


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PasswordHost]:
    monkeypatch.setattr(managed_files, "UNDO", str(tmp_path / "undo"))
    with password_host(tmp_path) as there:

        def rule(user: str, sudo: str) -> ManagedFile:
            return replace(sudoers_file(user, sudo), path=str(there.rule))

        monkeypatch.setattr(first_login, "sudoers_file", rule)
        yield there


def resolved(host: PasswordHost, **ssh: str) -> ResolvedHost:
    known = str(host.folder / "known_hosts")
    settings = Ssh.model_validate({"user": USER, "port": host.port, "known_hosts": known, **ssh})
    return ResolvedHost(name="spark-1", address="127.0.0.1", ssh=settings, groups=(), settings=HostSettings())


def keys(host: PasswordHost) -> OwnKeys:
    path = host.folder / "own"
    if not path.exists():
        make_key(path)
    return OwnKeys(path.with_name("own.pub").read_text().strip(), (paramiko.PKey.from_path(path),))


def opened(host: PasswordHost, *typed: str, key: HostKey | None = None) -> tuple[Opened, list[str]]:
    """Open it; what is asked is answered by `typed`, in turn."""
    asked: list[str] = []
    waiting = list(typed)

    def ask(question: str) -> str:
        asked.append(question)
        return waiting.pop(0)

    (met,) = meet([resolved(host)]).values()
    assert isinstance(met, Met)
    passwords = Passwords(Fleet("office", Path("office.yaml"), {}), ask)
    return open_host(met.host, key or met.key, keys(host), passwords, lambda _: None), asked


def test_a_password_opens_it_and_the_second_time_the_key_does(host: PasswordHost) -> None:
    done, asked = opened(host, PASSWORD)
    assert done == Opened(key_added=True, sudoers_placed=True)
    assert len(asked) == 1
    assert host.rule.read_text() == sudoers_file(USER, "listed").content
    assert host.keys.read_text().split()[:2] == keys(host).line.split()[:2]
    assert opened(host) == (Opened(key_added=False, sudoers_placed=False), [])
    assert host.passwords == [PASSWORD]


def refused(host: PasswordHost, words: str, *typed: str, key: HostKey | None = None) -> None:
    """It is refused with these words, and nothing is left."""
    with pytest.raises(RefusedError) as error:
        opened(host, *typed, key=key)
    assert words in str(error.value), str(error.value)
    assert PASSWORD not in str(error.value)
    assert (host.rule.exists(), host.keys.exists()) == (False, False)


def test_a_wrong_password_is_asked_for_three_times(host: PasswordHost) -> None:
    refused(host, "wrong password for user anna", "1", "2", "3")
    assert host.passwords == ["1", "2", "3"]


def test_another_key_than_the_one_that_was_judged_is_given_no_password(host: PasswordHost) -> None:
    kind = shown_key(resolved(host), route_of(resolved(host))).kind
    refused(host, "has changed since it was shown", PASSWORD, key=HostKey(kind, "AAAA"))
    assert host.passwords == []


def test_a_changed_key_is_seen_before_anything_else_and_without_noise(
    host: PasswordHost, capfd: pytest.CaptureFixture[str]
) -> None:
    other = paramiko.ECDSAKey.generate()
    entry = HostKey(other.get_name(), other.get_base64())
    remember(host.folder / "known_hosts", [(f"[127.0.0.1]:{host.port}", entry)])
    (found,) = meet([resolved(host)]).values()
    assert isinstance(found, RefusedError)
    assert "CHANGED HOST KEY: it shows ECDSA SHA256:" in found.what
    named = resolved(host, host_key=f"SHA256:{'A' * 43}")
    (found,) = meet([named]).values()
    assert isinstance(found, RefusedError)
    assert "host_key in the fleet file has another one" in found.what
    assert capfd.readouterr() == ("", "")


def test_sudo_with_its_own_password(host: PasswordHost) -> None:
    host.environment["SUDO_PASSWORD"] = "of-root"
    refused(host, "wrong password for sudo of user", PASSWORD, "1", "2")
    done, asked = opened(host, PASSWORD, "of-root")
    assert done.sudoers_placed
    assert "which is not the login's" in asked[1]


def test_a_user_without_sudo(host: PasswordHost) -> None:
    host.environment["NO_SUDOER"] = "1"
    refused(host, "may not use sudo", PASSWORD)


def test_sudo_that_asks_nothing_for_this_is_sent_no_password(host: PasswordHost) -> None:
    host.environment["SUDO_PASSWORD"] = ""
    done, _ = opened(host, PASSWORD)
    assert done.sudoers_placed
    # What stands in the file is the rule, and not the password that sudo did not want.
    assert PASSWORD not in host.rule.read_text()


def test_what_visudo_says_is_told(host: PasswordHost) -> None:
    host.environment["VISUDO_SAYS"] = "parse error near line 2"
    refused(host, "visudo refuses it, or it could not be written (parse error near line 2)", PASSWORD)


def test_sshd_that_takes_no_password_is_given_none(host: PasswordHost) -> None:
    host.methods = "publickey"
    refused(host, "in by publickey alone, and not with this key", PASSWORD)
    assert host.passwords == []


def test_a_host_that_is_not_there_and_one_that_is_no_sshd(host: PasswordHost) -> None:
    gone = resolved(host).model_copy(update={"ssh": Ssh(user=USER, port=9)})
    (found,) = meet([gone]).values()
    assert isinstance(found, RefusedError)
    assert "nothing lets us in at 127.0.0.1 port 9 (Connection refused)" in found.what
