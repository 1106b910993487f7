"""A service on a lab host, as its users and its systemd see it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from modules.catalog import load_catalog
from modules.fleet import ServicePlan, load_fleet
from modules.fleet.plan import host_plan
from tests.lab.lab_driver import Lab

_START_S = 400
_PAUSE_S = 1.0


@dataclass(frozen=True)
class Served:
    """The only service of a host."""

    lab: Lab
    fleet: Path
    host: str

    @property
    def plan(self) -> ServicePlan:
        """What the fleet file says of it."""
        (service,) = host_plan(load_fleet(self.fleet).hosts[self.host], load_catalog()).services
        return service

    @property
    def unit(self) -> str:
        """Its systemd unit."""
        return f"tinderbox-{self.plan.name}.service"

    @property
    def container(self) -> str:
        """The name of its container."""
        return f"tinderbox-{self.plan.name}"

    def state(self) -> str:
        """systemd's word for the unit: active means ready."""
        return self.lab.ssh(self.host, f"systemctl is-active {self.unit}", check=False).stdout.strip()

    def invocation(self) -> str:
        """An id that is another one for each start of the unit."""
        return self.lab.ssh(self.host, f"systemctl show -P InvocationID {self.unit}").stdout.strip()

    def image(self) -> str:
        """The id of the image that its container was made from."""
        return self.lab.ssh(self.host, f"sudo docker inspect -f '{{{{.Image}}}}' {self.container}").stdout.strip()

    def release(self) -> str:
        """The release that is in force."""
        current = f"/var/lib/tinderbox/ledger/{self.plan.name}/current"
        return self.lab.ssh(self.host, f"sudo readlink {current}").stdout.strip().removesuffix(".json")

    def await_ready(self) -> None:
        """Until the unit is active; fails the test when it does not get so in time, or gives up."""
        deadline = time.monotonic() + _START_S
        while (state := self.state()) != "active":
            assert state != "failed", self._journal()
            assert time.monotonic() < deadline, f"{self.unit} is {state} after {_START_S} s\n{self._journal()}"
            time.sleep(_PAUSE_S)

    def await_down(self) -> None:
        """Until systemd has noticed that the server is gone."""
        deadline = time.monotonic() + 60
        while self.state() == "active":
            assert time.monotonic() < deadline, f"{self.unit} is still active\n{self._journal()}"
            time.sleep(_PAUSE_S / 5)

    def reply(self) -> str:
        """What it says to a chat message, asked on the host."""
        body = {"model": self.plan.model.served_as, "messages": [{"role": "user", "content": "Hello."}]}
        url = f"http://127.0.0.1:{self.plan.service.port}/v1/chat/completions"
        asked = f"curl -sS --max-time 120 --json '{json.dumps({**body, 'max_tokens': 32})}' {url}"
        message = self.lab.ssh(self.host, asked).json["choices"][0]["message"]
        return str(message["content"] or message.get("reasoning") or "")

    @contextmanager
    def tunnel(self) -> Iterator[str]:
        """Base URL of its API on this machine, by an SSH tunnel as the README tells users to make one."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        forward = f"127.0.0.1:{port}:127.0.0.1:{self.plan.service.port}"
        argv = ["ssh", "-F", str(self.lab.layout.ssh_config), "-o", "ExitOnForwardFailure=yes", "-N", "-L", forward]
        with subprocess.Popen([*argv, self.host], stdin=subprocess.DEVNULL) as ssh:
            try:
                _await_port(port, ssh)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                ssh.terminate()

    def _journal(self) -> str:
        return self.lab.ssh(self.host, f"sudo journalctl --no-pager -n 60 -u {self.unit}", check=False).stdout


def _await_port(port: int, ssh: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            assert ssh.poll() is None, "ssh ended"
            assert time.monotonic() < deadline, "no tunnel came about"
            time.sleep(_PAUSE_S / 10)
        else:
            return
