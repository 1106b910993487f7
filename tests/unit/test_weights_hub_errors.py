from __future__ import annotations

import errno
import socket
import ssl

import pytest

from modules.hostside.hub_errors import Asked, explain, proxy_to


def asked(*, token: bool = False) -> Asked:
    return Asked("spark-1", "https://hub.example", "openai/gpt-oss-120b", "main", token)


class FakeResponse:
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class HfHubHTTPError(OSError):
    """As the client's: carries the response."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status} from the hub")
        self.response = FakeResponse(status)


class GatedRepoError(HfHubHTTPError):
    """As the client's."""


class ConnectError(Exception):
    """As the client's."""


def wrapped(cause: Exception) -> Exception:
    """A general error with the telling one as its cause, as the client raises it."""
    try:
        raise RuntimeError("local entry not found") from cause
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    ("error", "token", "words"),
    [
        (GatedRepoError(403), False, "name a secret with a token"),
        (GatedRepoError(403), True, "with the account that the token belongs to"),
        (HfHubHTTPError(401), True, "the hub refused the token (401)"),
        (HfHubHTTPError(401), False, "wants to know who asks (401)"),
        (HfHubHTTPError(429), False, "limits our rate (429)"),
        (HfHubHTTPError(503), False, "in trouble itself (503)"),
        (HfHubHTTPError(418), False, "the hub answered 418"),
        (OSError(errno.ENOSPC, "No space left on device"), False, "the disk is full"),
        (OSError(errno.EROFS, "Read-only file system", "/data"), False, "mounted read-only here"),
        (PermissionError(errno.EPERM, "Operation not permitted", "/data/x"), False, "may not write there ([Errno 1]"),
        # As Python raises it: with OpenSSL's number, which as the system's would be EPERM.
        (ssl.SSLCertVerificationError(1, "certificate is not yet valid"), False, "set the clock (timedatectl)"),
        (ssl.SSLCertVerificationError(1, "self-signed certificate"), False, "network.ca_bundle"),
        (ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"), False, "network.ca_bundle"),
        (socket.gaierror(-2, "Name or service not known"), False, "does not resolve here"),
        (ConnectError("[Errno -3] Temporary failure in name resolution"), False, "does not resolve here"),
        (ConnectError("All connection attempts failed"), False, "nothing listens there"),
        (TimeoutError("timed out"), False, "no answer in time"),
    ],
)
def test_the_telling_cause_is_found_through_what_wraps_it(error: Exception, token: bool, words: str) -> None:
    for told in (explain(error, asked(token=token)), explain(wrapped(error), asked(token=token))):
        assert told.startswith("spark-1: openai/gpt-oss-120b@main from https://hub.example: ")
        assert words in told
        assert "\n" not in told


def test_a_full_disk_counts_more_than_what_it_led_to() -> None:
    error = HfHubHTTPError(500)
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")

    assert "the disk is full" in explain(error, asked())


def test_a_disk_that_takes_nothing_is_told_with_the_file() -> None:
    told = explain(wrapped(OSError(errno.EROFS, "Read-only file system", "/data/hub/.tinderbox.lock")), asked())

    assert ": /data/hub/.tinderbox.lock: the disk is mounted read-only here" in told
    assert explain(OSError(errno.ENOSPC, "No space left on device"), asked()).endswith("whole files are kept")


def test_what_is_not_known_is_told_as_it_is() -> None:
    assert explain(ValueError("\n\nodd thing\nmore"), asked()).endswith("ValueError: odd thing")


def test_causes_that_go_in_a_circle_end() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first

    assert explain(first, asked()).endswith("ValueError: a")


def test_a_proxy_in_between_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert proxy_to("http://hub.example") is None
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy.example:3128")
    proxy = proxy_to("https://hub.example")
    assert proxy == "http://proxy.example:3128"
    told = explain(ConnectError("refused"), Asked("spark-1", "https://hub.example", "a/b", "main", False, proxy))
    assert "https://hub.example through the proxy http://proxy.example:3128: " in told

    monkeypatch.setenv("no_proxy", "hub.example")
    assert proxy_to("https://hub.example") is None
