"""The Ansible playbook of benchmarks/ansible: its environment, its inventory, and what it is told of the desired state.

What stands in the files is taken from a host that Tinderbox has brought there, so that both tools want the very same
bytes: a run of either tool after the other changes nothing, and that is checked.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.cost import Cost, costing
from modules.catalog import load_catalog
from modules.fleet import HostPlan, load_fleet
from modules.fleet.plan import host_plan
from modules.lab.layout import USER, Layout
from modules.operations.apt import is_wanted
from modules.operations.cuda import CUDA_HOME
from modules.operations.encodings import cache_name
from modules.operations.hostside import programs
from modules.release import layout as places

VERSION = "ansible-core==2.19.*"
PLAYBOOK = Path(__file__).with_name("ansible")
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
_EXEC = re.compile(r"SSH: (?:EXEC|PUT|FETCH)\b|^<[^>]+> (?:PUT|FETCH)\b", re.MULTILINE)


class AnsibleError(Exception):
    """A run that did not end as it should: the figures would mean nothing."""


@dataclass(frozen=True)
class Played:
    """A run of the playbook. `changed`: tasks that changed something, of all hosts."""

    cost: Cost
    changed: int
    tasks: int


@dataclass(frozen=True)
class Playbook:
    """The playbook for a lab. `folder`: of its inventory."""

    lab: Layout
    folder: Path

    @classmethod
    def prepare(cls, lab: Layout, fleet: Path, source: str) -> Playbook:
        """Install Ansible, and write what it is told. `source`: a host that has converged."""
        made = cls(lab, lab.folder / "ansible")
        (made.folder / "files" / "image").mkdir(parents=True, exist_ok=True)
        (made.folder / "group_vars").mkdir(exist_ok=True)
        made._install()
        plan = host_plan(load_fleet(fleet).hosts[source], load_catalog())
        made._write_files(plan, source)
        (made.folder / "group_vars" / "sparks.json").write_text(json.dumps(made._told(plan, source), indent=1))
        return made

    @classmethod
    def alone(cls, lab: Layout) -> Playbook:
        """Ansible, for hosts that the playbook itself is not played on."""
        made = cls(lab, lab.folder / "ansible")
        made.folder.mkdir(parents=True, exist_ok=True)
        made._install()
        return made

    def write_inventory(self, fleet: Path) -> None:
        """Which hosts there are."""
        # Not by `load_fleet`, which reads a file once a process: it has other hosts by now.
        hosts = {
            name: {"ansible_host": host["address"], "ansible_port": host["ssh"]["port"]}
            for name, host in yaml.safe_load(fleet.read_text())["hosts"].items()
        }
        common = {
            "ansible_user": USER,
            "ansible_ssh_private_key_file": str(self.lab.key),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.lab.known_hosts} -o StrictHostKeyChecking=yes",
        }
        content = {"sparks": {"hosts": hosts, "vars": common}}
        (self.folder / "hosts.yml").write_text(yaml.safe_dump(content, sort_keys=False))

    def play(self, hosts: tuple[str, ...], *words: str) -> Played:
        """Run it on these hosts. Raises `AnsibleError` unless every task of every host ends well."""
        cost, text = self._run(hosts, words)
        recap = {name: tuple(map(int, rest)) for name, *rest in _RECAP.findall(text)}
        if set(recap) != set(hosts) or any(found[2] or found[3] for found in recap.values()):
            raise AnsibleError(text[-4000:])
        return Played(cost, sum(found[1] for found in recap.values()), sum(found[0] for found in recap.values()))

    def round_trips(self, hosts: tuple[str, ...]) -> int:
        """How many times a run goes to the hosts by SSH, of all together; such a run is not for its time."""
        return len(_EXEC.findall(self._run(hosts, ("-vvv",))[1]))

    def ping(self, hosts: tuple[str, ...]) -> tuple[Cost, str]:
        """Ask hosts whether they answer; one that says nothing for 2 s does not."""
        return self._costing("ansible", hosts, ("--timeout", "2", "--module-name", "ping", "all"))

    def _run(self, hosts: tuple[str, ...], words: tuple[str, ...]) -> tuple[Cost, str]:
        return self._costing("ansible-playbook", hosts, (*words, str(PLAYBOOK / "site.yml")))

    def _costing(self, program: str, hosts: tuple[str, ...], words: tuple[str, ...]) -> tuple[Cost, str]:
        # A socket's path has 107 bytes at most.
        control = Path(f"/tmp/tinderbox-bench-{os.getpid()}")  # noqa: S108
        control.mkdir(mode=0o700, exist_ok=True)
        environment = os.environ | {
            "ANSIBLE_CONFIG": str(PLAYBOOK / "ansible.cfg"),
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.folder / "facts"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(control),
            "ANSIBLE_HOME": str(self.folder / "home"),
        }
        command = [str(self._bin / program), "-i", str(self.folder / "hosts.yml")]
        command += ["--forks", str(len(hosts)), "--limit", ",".join(hosts), *words]
        return costing(command, environment)

    @property
    def _bin(self) -> Path:
        return self.folder.parent.parent / f"ansible-{hashlib.sha256(VERSION.encode()).hexdigest()[:8]}" / "bin"

    def _install(self) -> None:
        if (self._bin / "ansible-playbook").exists():
            return
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self._bin.parent)], check=True)
        pip = [str(self._bin / "pip"), "install", "--quiet", "--disable-pip-version-check", VERSION]
        subprocess.run(pip, check=True, capture_output=True)

    def _read(self, host: str, path: str) -> bytes:
        command = ["ssh", "-F", str(self.lab.ssh_config), host, f"sudo base64 -w0 {path}"]
        return base64.b64decode(subprocess.run(command, check=True, capture_output=True).stdout)

    def _write_files(self, plan: HostPlan, source: str) -> None:
        files = self.folder / "files"
        (files / "site.crt").write_text(f"{(plan.ca_bundle or '').rstrip()}\n")
        for name in ("cuda", "container-toolkit"):
            (files / f"{name}.gpg").write_bytes(self._read(source, f"/etc/apt/keyrings/tinderbox-{name}.gpg"))
        (service,) = plan.services
        for unit in (places.unit_name(service.name), places.watch_unit_name(service.name)):
            (files / unit).write_bytes(self._read(source, f"/etc/systemd/system/{unit}"))
        noted = self._read(source, f"/var/lib/tinderbox/ledger/{service.name}/current")
        (files / f"{json.loads(noted)['id']}.json").write_bytes(noted)
        for name, text in self._image(source)["files"].items():
            (files / "image" / name).write_text(text)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, content in programs().items():
                entry = tarfile.TarInfo(f"tinderbox/{name}")
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
        (files / "programs.tar").write_bytes(packed.getvalue())

    def _image(self, source: str) -> dict[str, Any]:
        request: dict[str, Any] = json.loads(self._read(source, "/var/lib/tinderbox/images/*/request.json"))
        return request

    def _told(self, plan: HostPlan, source: str) -> dict[str, Any]:
        settings, (service,) = plan.settings, plan.services
        network, image = settings.network, self._image(source)
        stamp = json.loads(self._read(source, "$(ls /var/lib/tinderbox/weights/*.json | grep -v pieces)"))
        environment = self._read(source, places.environment_file(service.name)).decode()
        release = json.loads(self._read(source, f"/var/lib/tinderbox/ledger/{service.name}/current"))
        snapshot = places.snapshot_directory(settings.weights.home, service.model.repository, stamp["commit"])
        named = {"cuda": network.apt.cuda, "container-toolkit": network.apt.container_toolkit}
        cuda, toolkit = settings.cuda, settings.runtime
        versions = (
            "" if is_wanted("", wish) else f"={wish}" for wish in (cuda.version, toolkit.container_toolkit_version)
        )
        return {
            "files": str(self.folder / "files"),
            "gpu_name": re.escape(settings.hardware.gpu or "GB10"),
            "memory_gib": settings.hardware.memory_gib,
            "network_environment": _assignments(self._read(source, "/etc/tinderbox/network.env").decode()),
            "repositories": [
                {"name": name, "uri": of.uri, "suite": of.suite, "fingerprint": of.fingerprint}
                for name, of in named.items()
                if of is not None
            ],
            "packages": [
                f"{name}{version}"
                for name, version in zip((cuda.package, "nvidia-container-toolkit"), versions, strict=True)
            ],
            "architecture": cuda.architecture,
            "cuda_home": CUDA_HOME,
            "registry": network.registry,
            "docker_config": json.loads(self._read(source, "/etc/docker/daemon.json")),
            "image": image["tag"],
            "image_base": image["base"],
            "image_recipe": image["digest"],
            "encodings_url": network.encodings,
            "encodings": [
                {"name": name, "sha256": one.sha256, "cache_name": cache_name(one.url)}
                for name, one in service.encodings.items()
            ],
            "repository": service.model.repository,
            "commit": stamp["commit"],
            "snapshot": snapshot,
            "hf_home": settings.weights.home,
            "weight_files": _files_of(stamp),
            "service": service.name,
            "release": release["id"],
            "environment_of_service": _assignments(environment),
            "memory": json.loads(self._read(source, places.memory_file(service.name))),
            "service_port": service.service.port,
            "served_as": service.model.served_as,
        }


def _assignments(text: str) -> dict[str, str]:
    lines = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: value.strip('"') for name, _, value in lines}


def _files_of(stamp: dict[str, Any]) -> list[dict[str, Any]]:
    """Names and hashes; git's own hash, of small files, is none that sha256sum knows."""
    return [{"name": one["path"], "sha256": one["digest"] if one["lfs"] else None} for one in stamp["files"]]
