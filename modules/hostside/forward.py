"""A way from a free port of this machine's loopback to a service elsewhere, by a program such as `ssh -N -L`."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence

# In the program's words: the port that it listens on.
PORT = "{port}"
_OPEN_S = 30.0
_ANSWER_S = 15.0
_PAUSE_S = 0.1


class ForwardError(Exception):
    """There is no way; with what the program said."""


def free_port() -> int:
    """One that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def forwarded(words: Sequence[str]) -> Iterator[str]:
    """The service's URL at this end, while the program runs. Raises `ForwardError`."""
    port = free_port()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        command = [word.replace(PORT, str(port)) for word in words]
        try:
            program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        except OSError as error:
            raise ForwardError(f"{words[0]} could not be started on the controller: {error.strerror}") from None
        try:
            if not _listens(program, port):
                said.seek(0)
                last = " ".join(said.read().split())[-300:]
                raise ForwardError(f"{words[0]} opened no way to the service: {last or 'it says nothing'}")
            url = f"http://127.0.0.1:{port}"
            _answers(url)
            yield url
        finally:
            program.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(5)


def _listens(program: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + _OPEN_S
    while program.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _answers(url: str) -> None:
    """Whatever it answers; a way that the other end does not allow is open only at this end."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"{url}/health", timeout=_ANSWER_S).close()
    except urllib.error.HTTPError:
        return
    except (OSError, ValueError) as error:
        told = f"the service does not answer over it ({error}); the host's sshd must allow TCP forwarding"
        raise ForwardError(told) from None
