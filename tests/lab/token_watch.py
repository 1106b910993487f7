"""Whether a secret shows in a process list, on a lab's host and on the controller, while something runs."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.lab_driver import Lab

# Its own words do not hold the secrets: they stand in a file.
_ON_HOST = (
    "sudo sh -c 'cd /root; while ! test -e enough; do grep -lsaFf secrets.shown /proc/[0-9]*/cmdline; "
    "grep -lsaFf secrets.held /proc/[0-9]*/environ; sleep 0.1; done'"
)
_PAUSE_S = 0.05


class Watch:
    """`seen`: a line for each process that showed one."""

    def __init__(self) -> None:
        self.seen: list[str] = []


@contextmanager
def watched_host(lab: Lab, host: str, secrets: list[str], handed_over: list[str]) -> Iterator[Watch]:
    """On a host: `secrets` anywhere, and `handed_over`, which a program has in its environment, in arguments."""
    lab.write(host, "/root/secrets.shown", "".join(f"{secret}\n" for secret in (*secrets, *handed_over)))
    lab.write(host, "/root/secrets.held", "".join(f"{secret}\n" for secret in secrets))
    lab.ssh(host, "sudo rm -f /root/enough")
    argv = ["ssh", "-F", str(lab.layout.ssh_config), host, _ON_HOST]
    watch = Watch()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield watch
        finally:
            lab.ssh(host, "sudo touch /root/enough")
            said, _ = child.communicate(timeout=60)
            watch.seen += said.splitlines()
            lab.ssh(host, "sudo rm -f /root/enough /root/secrets.shown /root/secrets.held")


@contextmanager
def watched_here(secrets: list[str]) -> Iterator[Watch]:
    """On the controller: arguments and environments of all processes."""
    watch, ended = Watch(), threading.Event()
    wanted, own = [secret.encode() for secret in secrets], Path("/proc/self/ns/pid").readlink()

    def look() -> None:
        while not ended.wait(_PAUSE_S):
            for process in Path("/proc").glob("[0-9]*"):
                for part in ("cmdline", "environ"):
                    try:
                        # The lab's hosts are containers here, and their processes are theirs.
                        shown = (process / part).read_bytes() if (process / "ns" / "pid").readlink() == own else b""
                    except OSError:
                        continue
                    if any(secret in shown for secret in wanted):
                        watch.seen.append(f"{part} of {shown[:200]!r}")

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield watch
    finally:
        ended.set()
        watcher.join()
