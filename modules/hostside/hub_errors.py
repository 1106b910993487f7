"""What went wrong between this host and a Hugging Face hub, in words that say what to do.

The client's exceptions are told apart by class name and HTTP status, so that no client is needed to test this.
"""

from __future__ import annotations

import errno
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    from modules.hostside.wrong_clock import blames_clock, remedy
else:
    from wrong_clock import blames_clock, remedy


@dataclass(frozen=True)
class Asked:
    """What the hub was asked for. `host`: this machine's name; `token`: whether a token went along.

    `proxy`: what the question went through.
    """

    host: str
    endpoint: str
    repository: str
    revision: str
    token: bool
    proxy: str | None = None


@dataclass(frozen=True)
class Seen:
    """An error with all that caused it. `kinds`: class names, bases included; `status`: of the hub's answer."""

    kinds: frozenset[str]
    status: int | None
    errnos: frozenset[int]
    text: str
    token: bool

    @classmethod
    def of(cls, error: BaseException, *, token: bool) -> Seen:
        """Gather what the chain of causes holds."""
        chain = list(causes(error))
        return cls(
            kinds=frozenset(kind.__name__ for link in chain for kind in type(link).__mro__),
            status=next((status for status in map(_status, chain) if status is not None), None),
            errnos=frozenset(link.errno for link in chain if _of_the_system(link) and link.errno is not None),
            text=" ".join(str(link) for link in chain),
            token=token,
        )


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    met: set[int] = set()
    while error is not None and id(error) not in met:
        met.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _of_the_system(error: BaseException) -> TypeGuard[OSError]:
    """Whether its number is the system's: that of a TLS error is OpenSSL's, and its 1 is no EPERM."""
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError)


def _status(error: BaseException) -> int | None:
    response: Any = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def _kind(*names: str) -> Callable[[Seen], bool]:
    return lambda seen: bool(seen.kinds & set(names))


def _says(*parts: str) -> Callable[[Seen], bool]:
    return lambda seen: any(part in seen.text for part in parts)


# The first that fits tells most: what the disk says before what the hub answers, an answer before the lack of one.
_RULES: tuple[tuple[Callable[[Seen], bool], str], ...] = (
    (
        lambda seen: bool(seen.errnos & {errno.ENOSPC, errno.EDQUOT}),
        "{at}the disk is full (df -h): make room and run again; whole files are kept",
    ),
    (
        lambda seen: errno.EROFS in seen.errnos,
        "{at}the disk is mounted read-only here (findmnt -T, dmesg): mount it writable, or set `weights.home` to "
        "another",
    ),
    (
        lambda seen: bool(seen.errnos & {errno.EACCES, errno.EPERM}),
        "even root may not write there ({text}): a network disk, or a file that is marked immutable (lsattr)",
    ),
    (
        _kind("RevisionNotFoundError"),
        "the hub has no revision {revision!r} of it (404): correct the model's `revision`",
    ),
    (
        lambda seen: "GatedRepoError" in seen.kinds and seen.token,
        "gated ({status}): accept the model's licence on the hub with the account that the token belongs to",
    ),
    (
        _kind("GatedRepoError"),
        "gated ({status}): accept the model's licence on the hub, and name a secret with a token in its `token`",
    ),
    (_kind("EntryNotFoundError"), "the hub lists this file and has it not (404): is `network.hub` a whole mirror?"),
    (_kind("DisabledRepoError"), "the hub has disabled this repository"),
    (
        lambda seen: seen.status in {401, 403} and seen.token,
        "the hub refused the token ({status}): it is wrong, expired, or may not read this repository",
    ),
    (
        lambda seen: seen.status in {401, 403},
        "the hub wants to know who asks ({status}): it is private, gated or does not exist; check its name, "
        "and name a secret with a token in its `token`",
    ),
    (
        lambda seen: "RepositoryNotFoundError" in seen.kinds or seen.status == 404,
        "the hub has no such repository (404): check its name, and `network.hub` if that is a mirror",
    ),
    (
        lambda seen: seen.status == 429,
        "the hub limits our rate (429): wait a few minutes and run again; a token raises the limit",
    ),
    (
        lambda seen: seen.status is not None and seen.status >= 500,
        "the hub is in trouble itself ({status}): run again later, or set `network.hub` to a mirror",
    ),
    (
        _kind("JSONDecodeError"),
        "the answer is not JSON: a proxy or a login page stands in between, or this is no hub; "
        "try: curl -v {endpoint}/api/models/{repository}",
    ),
    (
        _kind("FileMetadataError"),
        "the answer lacks X-Repo-Commit: `network.hub` is no hub, nor a mirror that passes headers on",
    ),
    (lambda seen: seen.status is not None, "the hub answered {status}"),
    (lambda seen: blames_clock(seen.text), "{clock}"),
    (
        lambda seen: "SSLError" in seen.kinds or "CERTIFICATE_VERIFY_FAILED" in seen.text,
        "its certificate is not trusted here: set `network.ca_bundle` to the authority that signed it",
    ),
    (
        _says("Name or service not known", "name resolution", "No address associated", "[Errno -"),
        "its name does not resolve here: check `network.hub`, and the host's DNS",
    ),
    (_kind("ProxyError"), "the proxy did not let us through: check `network.proxy`"),
    (
        _kind("ConnectError", "ConnectionRefusedError"),
        "nothing listens there: check `network.hub` and `network.proxy`, and that the hub (or the lab's mirror) is up",
    ),
    (
        _kind("TimeoutException", "TimeoutError"),
        "no answer in time: check `network.hub` and `network.proxy`; whole files are kept",
    ),
    (
        _kind("RemoteProtocolError", "ReadError", "ConnectionResetError"),
        "the connection broke again and again: run again; whole files are kept",
    ),
)


def explain(error: BaseException, asked: Asked) -> str:
    """One line that names host and hub (and the file that the error has as a note), what is wrong, and what to do."""
    seen = Seen.of(error, token=asked.token)
    words = next((words for fits, words in _RULES if fits(seen)), None)
    if words is None:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "no further words")
        what = f"{type(error).__name__}: {first}"
    else:
        what = words.format(
            status=seen.status,
            revision=asked.revision,
            endpoint=asked.endpoint,
            repository=asked.repository,
            clock=remedy(),
            at="".join(f"{path}: " for path in _paths(error)[:1]),
            text=next((link for link in causes(error) if isinstance(link, OSError)), error),
        )
    way = asked.endpoint if asked.proxy is None else f"{asked.endpoint} through the proxy {asked.proxy}"
    file = "".join(f", {note}," for note in getattr(error, "__notes__", ())[:1])
    return f"{asked.host}: {asked.repository}@{asked.revision}{file} from {way}: {what}"


def _paths(error: BaseException) -> list[str]:
    """The files that the system's errors are about."""
    return [str(link.filename) for link in causes(error) if _of_the_system(link) and link.filename is not None]


def proxy_to(endpoint: str) -> str | None:
    """The proxy that this process's environment names for `endpoint`, without a password."""
    parts = urlsplit(endpoint)
    proxy = getproxies().get(parts.scheme)
    if proxy is None or proxy_bypass(parts.netloc):
        return None
    found = urlsplit(proxy)
    return found._replace(netloc=found.netloc.rsplit("@", 1)[-1]).geturl()
