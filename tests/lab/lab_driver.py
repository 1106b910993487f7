"""What tests do with a lab: run Tinderbox over it, look at its hosts, make its outside world misbehave."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from modules.lab.layout import ROOT, Layout

_GPU = "/etc/tinderbox-lab/gpu.json"
_JOURNAL_LINES = 3000


@dataclass(frozen=True)
class Run:
    """A program that ran to its end."""

    rc: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Standard output, read as JSON."""
        return json.loads(self.stdout)

    @property
    def text(self) -> str:
        """All that it said, as the user saw it but for the order."""
        return self.stdout + self.stderr


@dataclass
class Lab:
    """A lab that is up. `fleet`: its fleet file; methods that run Tinderbox take another one by `fleet=`."""

    layout: Layout

    @property
    def fleet(self) -> Path:
        """The fleet file with all hosts of the lab."""
        return self.layout.fleet

    def command(self, action: str, *arguments: str, check: bool = True, timeout_s: float = 900) -> Run:
        """`python -m modules.lab ACTION` on this lab."""
        argv = [sys.executable, "-m", "modules.lab", action, "--name", self.layout.name, *arguments]
        run = _run(argv, timeout_s=timeout_s)
        assert run.rc == 0 or not check, run.text
        return run

    def write_fleet(self, name: str, change: Callable[[dict[str, Any]], None]) -> Path:
        """Another fleet file for the same hosts: `change` gets the default one's content, as a dictionary.

        It lies beside the default one, so that relative paths in it hold.
        """
        content = yaml.safe_load(self.fleet.read_text())
        change(content)
        path = self.layout.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def fleet_of(self, *hosts: str) -> Path:
        """A fleet file with only these hosts."""

        def keep(content: dict[str, Any]) -> None:
            content["hosts"] = {name: content["hosts"][name] for name in hosts}

        return self.write_fleet(f"fleet-of-{'-'.join(hosts)}", keep)

    def pyinfra(self, *arguments: str, fleet: Path | None = None, timeout_s: float = 1200) -> Run:
        """`pyinfra inventory.py ...` as a user runs it, but for the spinner."""
        program = str(Path(sys.executable).with_name("pyinfra"))
        return self.tinderbox([program, "inventory.py", *arguments], fleet=fleet, timeout_s=timeout_s)

    def converge(self, *arguments: str, fleet: Path | None = None, timeout_s: float = 1200) -> Run:
        """`python -m modules.converge ...`."""
        argv = [sys.executable, "-m", "modules.converge", *arguments]
        return self.tinderbox(argv, fleet=fleet, timeout_s=timeout_s)

    def tinderbox(self, argv: list[str], *, fleet: Path | None = None, timeout_s: float = 1200) -> Run:
        """Any program of the project, over this lab."""
        return _run(argv, environment=self.environment(fleet), timeout_s=timeout_s)

    def environment(self, fleet: Path | None = None) -> dict[str, str]:
        """For programs that a test starts itself."""
        return {"TINDERBOX_FLEET": str(fleet or self.fleet), "PYINFRA_PROGRESS": "off"}

    def ssh(self, host: str, command: str, *, check: bool = True, timeout_s: float = 300) -> Run:
        """A shell command on a host, as user `spark` (who may sudo)."""
        options = ["-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", f"ControlPath={self._control_path}"]
        run = _run(["ssh", "-F", str(self.layout.ssh_config), *options, host, command], timeout_s=timeout_s)
        assert run.rc == 0 or not check, f"{host}: {command}: status {run.rc}\n{run.text}"
        return run

    def read(self, host: str, path: str) -> str:
        """A file of a host, whoever may read it there."""
        return self.ssh(host, f"sudo cat {shlex.quote(path)}").stdout

    def write(self, host: str, path: str, text: str) -> None:
        """Write a file on a host as root."""
        argv = ["ssh", "-F", str(self.layout.ssh_config), host, f"sudo tee {shlex.quote(path)}"]
        subprocess.run(argv, input=text, text=True, check=True, capture_output=True)

    def address(self, host: str) -> str:
        """Where the others reach a host, on the lab's own network."""
        return str(json.loads((self.layout.mirror_state / "names.json").read_text())[host])

    def crash(self, host: str) -> None:
        """Kill a host as a power cut does, and start it again."""
        subprocess.run(["docker", "kill", self.layout.container(host)], check=True, capture_output=True)
        self.command("up")

    def restart(self, host: str) -> None:
        """`docker restart` of a host, and wait until it is back."""
        self.command("restart", host)

    @contextmanager
    def paused(self, host: str) -> Iterator[None]:
        """While this lasts, the host hangs: its kernel takes connections, and nothing answers."""
        container = self.layout.container(host)
        subprocess.run(["docker", "pause", container], check=True, capture_output=True)
        try:
            yield
        finally:
            subprocess.run(["docker", "unpause", container], check=True, capture_output=True)

    @contextmanager
    def gpu(self, host: str, **changes: Any) -> Iterator[None]:
        """While this lasts, the host's nvidia-smi tells these figures (keys: see docs/lab.md)."""
        before = self.read(host, _GPU)
        self.write(host, _GPU, json.dumps({**json.loads(before), **changes}))
        try:
            yield
        finally:
            self.write(host, _GPU, before)

    @contextmanager
    def faults(self, *faults: Mapping[str, Any]) -> Iterator[None]:
        """While this lasts, the mirror misbehaves (keys: see docs/lab.md)."""
        self._write_faults(faults)
        try:
            yield
        finally:
            self._write_faults(())

    @contextmanager
    def shaped(self, host: str, mbit: float) -> Iterator[None]:
        """While this lasts, the host (or `mirror`) has a link of so many Mbit/s each way."""
        self.command("shape", host, "--mbit", f"{mbit:g}")
        try:
            yield
        finally:
            self.command("shape", host)

    def requests(self, since: int = 0, host: str | None = None) -> list[dict[str, Any]]:
        """What the mirror was asked, in order; `since`: leave out so many at the start; `host`: only its requests."""
        path = self.layout.mirror_state / "requests.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        asked = [json.loads(line) for line in lines[since:]]
        if host is None:
            return asked
        return [each for each in asked if each["client"] == self.address(host)]

    def dump(self, folder: Path) -> None:
        """Write down what the hosts and the mirror have to say, for whoever looks into a failure."""
        folder.mkdir(parents=True, exist_ok=True)
        for host in yaml.safe_load(self.fleet.read_text())["hosts"]:
            for name, command in _EVIDENCE.items():
                said = self.ssh(host, command, check=False, timeout_s=60)
                (folder / f"{host}-{name}.txt").write_text(said.text)
        requests = [json.dumps(each) for each in self.requests()]
        (folder / "mirror-requests.jsonl").write_text("\n".join(requests))

    @property
    def _control_path(self) -> str:
        # A socket's path has 107 bytes at most: not in the lab's folder, which may lie deep.
        return f"/tmp/tinderbox-{os.getpid()}-%C"

    def _write_faults(self, faults: object) -> None:
        path = self.layout.mirror_state / "faults.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(faults))
        fresh.rename(path)


# For programs that a test interrupts: what a shell runs in the background, and all that this starts, ignores Ctrl-C.
HEEDING_CTRL_C = ("env", "--default-signal=INT")

_EVIDENCE = {
    "journal": f"sudo journalctl --no-pager -n {_JOURNAL_LINES}",
    "units": "systemctl list-units --all --no-pager 'tinderbox-*'; systemctl --failed --no-pager",
    "containers": 'sudo docker ps -a; for each in $(sudo docker ps -aq); do echo "== $each"; '
    "sudo docker logs --tail 300 $each 2>&1; done",
    "jobs": "sudo sh -c 'tail -n 200 /var/lib/tinderbox/jobs/*/log /var/lib/tinderbox/jobs/*/status.json' 2>&1",
    "ledger": "sudo sh -c 'find /var/lib/tinderbox /etc/tinderbox -type f -size -64k | head -200; df -h / ; free -m'",
}


def _run(argv: list[str], *, environment: Mapping[str, str] | None = None, timeout_s: float) -> Run:
    done = subprocess.run(
        argv, cwd=ROOT, env={**os.environ, **(environment or {})}, timeout=timeout_s,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    return Run(done.returncode, done.stdout, done.stderr)
