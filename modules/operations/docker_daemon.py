"""The docker daemon: there, running, and set up for GPUs."""

from __future__ import annotations

import json
from collections.abc import Generator

from pyinfra import host
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.docker_daemon import CONFIG, DEVICES, DaemonState, DockerDaemon
from modules.facts.hostside import HOME
from modules.facts.survey import Question
from modules.operations.apt import install_job
from modules.operations.differences import differs, files_differ
from modules.operations.docker_config import (
    PROXY_ENVIRONMENT,
    Config,
    ConfigError,
    merged,
    parsed,
    proxy_files,
    registry_certificates,
    rendered,
)
from modules.operations.job import run_job
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import refusal, unreadable
from modules.operations.turns import restart_waits
from modules.spec.network import Network
from modules.spec.settings import Runtime

# DGX OS has docker-ce already. Where there is none, the distribution's own needs no further repository.
PACKAGE = "docker.io"


def restart_reasons(found: DaemonState, files: list[ManagedFile], relies_on_trust_store: bool) -> list[str]:
    """Why dockerd has to be restarted with `files`; empty when it can go on. A restart ends running containers."""
    reasons = [f"{file.path} changes" for file in files]
    if not found.active:
        reasons.append("it is not running")
    elif None not in {found.version, found.running} and found.version != found.running:
        reasons.append(f"{found.version} is installed, and {found.running} runs")
    if relies_on_trust_store and not found.trusts_site:
        reasons.append("it started before the site's certificates changed")
    return reasons


def restart(files: list[ManagedFile]) -> StringCommand:
    """Restart dockerd with the changed files; those go by standard input."""
    document = {f.path: None if f.content is None else {"text": f.content, "mode": f.mode} for f in files}
    return StringCommand("python3", f"{HOME}/restart_docker.py", _stdin=json.dumps(document))


def renewed_devices() -> StringCommand:
    """Have NVIDIA's toolkit describe the devices anew; it needs a driver that answers."""
    new = f"{DEVICES}.new"
    generated = f"nvidia-ctk cdi generate --format=yaml --output={new}"
    return StringCommand(f"{generated} && mv -f {new} {DEVICES} || {{ rm -f {new}; exit 1; }}")


def daemon_there(network: Network, ca_bundle: str | None) -> Question[DaemonState]:
    """How the host's dockerd stands, and the files that it should have."""
    files = [*proxy_files(network.proxy), *registry_certificates(network, ca_bundle, ())]
    return Question(DockerDaemon, {"paths": [file.path for file in files]})


@operation()
def docker_ready(wish: Runtime, network: Network, ca_bundle: str | None) -> Generator[PyinfraCommand, None, None]:
    """Have dockerd installed, configured and running; it is restarted only for a change that needs it.

    A device specification that is of a former driver is renewed.

    + wish: the host's runtime settings
    + network: the host's network settings: proxy and registry
    + ca_bundle: text of the site's certificates (PEM), None for none
    """
    there = daemon_there(network, ca_bundle)
    found = there.of(host)
    if found is not None and not found.installed:
        yield from run_job(install_job(PACKAGE, "*", None))
        found = there.of(host)
    if found is None:
        yield from unreadable("the state of dockerd")
        return
    if found.masked:
        yield refusal(
            f"{host.name}: docker.service is masked, so it can not be started. If nothing here needs that: "
            "sudo systemctl unmask docker.service docker.socket"
        )
        return
    try:
        config = parsed(found.config)
    except ConfigError as error:
        yield refusal(f"{host.name}: {CONFIG}: {error}. dockerd can not read it either: repair or remove it")
        return
    wanted = merged(config, wish)
    restarting = unsettled(proxy_files(network.proxy), found.files)
    if wanted != config:
        restarting.append(ManagedFile(CONFIG, rendered(wanted)))
    reasons = restart_reasons(found, restarting, ca_bundle is not None and network.registry is None)
    certificates = unsettled(registry_certificates(network, ca_bundle, found.registry_certificates), found.files)
    _tell(found, config, wanted, [*certificates, *restarting], reasons)
    if found.active and reasons and restart_waits(f"dockerd is restarted: {', '.join(reasons)}"):
        reasons = []
    if found.stale_devices:
        host.log(f"{DEVICES} is renewed: {found.stale_devices[0]}, which it names, is not there any more")
        yield renewed_devices()
    elif found.enabled and not certificates and not reasons:
        host.noop("dockerd is set up and runs")
        return
    yield from settle(certificates)
    if not found.enabled:
        yield StringCommand("systemctl enable docker.service")
    if reasons:
        host.log(f"dockerd is restarted: {', '.join(reasons)}")
        yield restart(restarting)


def _tell(found: DaemonState, config: Config, wanted: Config, files: list[ManagedFile], reasons: list[str]) -> None:
    """What differs, for a dry run."""
    for key in sorted(wanted.keys() | config.keys()):
        if wanted.get(key) != config.get(key):
            differs(CONFIG, f"{key} is {json.dumps(config.get(key))}, and should be {json.dumps(wanted.get(key))}")
    others = [file for file in files if file.path != CONFIG]
    # A proxy's address can hold a password.
    files_differ(others, found.files, secret=(PROXY_ENVIRONMENT,))
    if found.stale_devices:
        differs(DEVICES, f"names {found.stale_devices[0]}, which is not there")
    if not found.enabled:
        differs("unit docker.service", "is not enabled")
    for reason in reasons:
        if not reason.endswith(" changes"):
            differs("dockerd", reason)
