"""A service on a host: its release in force, its unit enabled, its server ready."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from pyinfra import host, logger, state
from pyinfra.api import FunctionCommand, QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.obstacles import PortHolder, StrangeEngines
from modules.facts.releases import HostReleases
from modules.facts.service import Barred, ServiceRelease, ServiceState
from modules.facts.survey import Question
from modules.fleet import HostPlan, ServicePlan, load_fleet
from modules.fleet.lock import read_lock
from modules.hostside.version_changes import told
from modules.images.reference import image_reference
from modules.operations import drain
from modules.operations.adopting import takes_over
from modules.operations.asked import forced
from modules.operations.differences import differs
from modules.operations.engine_differences import differs_from
from modules.operations.follow import follow
from modules.operations.job import start_command
from modules.operations.managed_files import settle
from modules.operations.memory import Reckoned, memory_document, memory_of, room_for, services_file, watched_engines
from modules.operations.pair_members import parts_apart, whole
from modules.operations.require import foreseen, refusal, required, unreadable
from modules.operations.start_job import follow_start, settle_job, start_job
from modules.operations.weights import pinned_commit
from modules.release import layout
from modules.release.build import Surroundings, build_release, key_file, key_variable, makes_key
from modules.release.decision import Action, changes, decide, lacking, turned_away
from modules.release.files import HostFile, release_files
from modules.spec.release import Release

LEDGER = str(layout.PROGRAMS / "ledger.py")
API_KEY = str(layout.PROGRAMS / "api_key.py")
PAIR_UNIT = str(layout.PROGRAMS / "pair_unit.py")
_FILES = (
    *(layout.unit_file, layout.environment_file, layout.label_file, layout.watch_unit_file, layout.secret_file),
    layout.pair_unit_file,
)
NEIGHBOURS = str(layout.PROGRAMS / "neighbours.py")


def service_secrets(plan: ServicePlan) -> dict[str, str]:
    """Environment variable → value of what the engine must know and nobody else may."""
    variable, name = key_variable(plan), plan.service.api_key
    return {variable: load_fleet().secret(name)} if variable is not None and name is not None else {}


def service_there(plan: ServicePlan, home: str) -> Question[ServiceState]:
    """All that decides about a service."""
    files = [file(plan.name) for file in _FILES]
    asked = {
        "service": plan.name,
        "image": image_reference(plan.recipe, read_lock(load_fleet().path)),
        "repository": layout.model_directory(home, plan.model.repository),
        "revision": pinned_commit(plan.model) or plan.model.revision,
        "model_file": plan.model.file,
        "files": [*files, layout.services_file()],
        "encodings": [str(layout.ENCODINGS / name) for name in plan.encodings],
        "key_variable": key_variable(plan) if makes_key(plan) else None,
        "draft": _draft(plan, home),
    }
    return Question(ServiceRelease, asked)


def wanted_release(
    plan: ServicePlan, image: str, home: str, found: ServiceState, secrets: Mapping[str, str]
) -> Release:
    """What the host is to serve, as it was found."""
    commit = found.commit or "unknown"
    around = Surroundings(image, commit, home, found.systemd, secrets, found.made_key, found.draft_commit)
    return build_release(plan, around)


def _draft(plan: ServicePlan, home: str) -> tuple[str, str, str | None] | None:
    if plan.draft is None:
        return None
    directory = layout.model_directory(home, plan.draft.repository)
    return directory, pinned_commit(plan.draft) or plan.draft.revision, plan.draft.file


def stage_request(start: Start, reckoned: Reckoned | None) -> str:
    """What `ledger.py stage` reads. It goes by standard input, since it may hold the API key."""
    plan, release, files = start.plan, start.release, start.files
    return json.dumps(
        {
            "service": release.service,
            "id": release.id,
            "release": release.model_dump(mode="json"),
            "files": [
                *({"path": file.path, "content": file.content, "secret": file.secret} for file in files),
                {
                    "path": layout.memory_file(plan.name),
                    "content": json.dumps(memory_document(start.services, plan, reckoned)) + "\n",
                    "secret": False,
                },
            ],
            "memory_plan": reckoned.plan.document() if reckoned is not None and reckoned.plan is not None else None,
            "image_id": start.found.image,
            "caches": sorted(plan.engine.caches),
        }
    )


@operation()
def service_running(plan: ServicePlan, services: HostPlan) -> Generator[PyinfraCommand, None, None]:
    """Put the service's release in force and have its server ready: one start for a change, none without one.

    A server that runs is stopped only when all that the new release needs is on the host. A release that does not get
    ready makes way for the one before it, and fails the host. It is not tried again unchanged, unless that is forced.

    + plan: the service
    + services: all of the host, which share its memory
    """
    if plan.cluster is not None and not (yield from whole(plan)):
        return
    home = services.settings.weights.home
    if (plan.service.api_key is not None or plan.service.is_open) and key_variable(plan) is None:
        yield refusal(
            f"{host.name}: services.{plan.name}: engine {plan.service.engine} takes no API key from its environment, "
            "so it would serve without one. Remove api_key and listen on loopback, or use another engine."
        )
        return
    image = image_reference(plan.recipe, read_lock(load_fleet().path))
    there = service_there(plan, home)
    found = there.of(host)
    if found is None:
        yield from unreadable(f"the state of service {plan.name}")
        return
    if makes_key(plan) and found.made_key is None:
        yield from _key_made(plan)
        found = there.of(host)
        if found is None or found.made_key is None:
            yield from unreadable(f"the API key that the host was to make for service {plan.name}")
            return
    secrets = service_secrets(plan)
    release = wanted_release(plan, image, home, found, secrets)
    files = release_files(release, secrets, plan.host)
    action = _action(plan, release, files, found)
    differs_from(release, files, found, action)
    yield from neighbours_told(services, found)
    bad = turned_away(release, action, found)
    if bad is not None and not forced():
        yield from _refused(plan, release.id, bad, found)
        return
    if found.upgraded and found.current == release.id:
        host.log(
            f"{plan.name}: changed on this host since release {release.id} was last proved: {told(found.upgraded)}"
        )
    yield from _pair_ended(plan, found)
    if action is Action.NOTHING:
        host.noop(f"{plan.name} serves release {release.id}")
        if found.closed and plan.gate is None:
            yield drain.opened(plan.name)
    else:
        yield from _started(Start(plan, services, release, files, found, action))
    # An entry of before, or an image that was asked more since.
    if action is not Action.INSTALL and not found.attested:
        yield StringCommand(layout.PYTHON, LEDGER, "attest", QuoteString(plan.name), release.id)
    # Only of a good one, since a release that is gone back to may need it.
    if not secrets and found.last_good == release.id and found.files.get(layout.secret_file(plan.name)) is not None:
        yield StringCommand("rm -f", QuoteString(layout.secret_file(plan.name)))


def _action(plan: ServicePlan, release: Release, files: tuple[HostFile, ...], found: ServiceState) -> Action:
    """What is to be done here, also for the other hosts of a service that spans several."""
    action = decide(release, files, found, gated=plan.gate is not None)
    if action is Action.NOTHING and (apart := parts_apart(plan, release)):
        host.log(f"{plan.name}: its hosts are not alike, so it is started anew: {'; '.join(apart)}")
        return Action.INSTALL
    return action


def _pair_ended(plan: ServicePlan, found: ServiceState) -> Generator[PyinfraCommand, None, None]:
    """What it spanned with others ends here; on those that the fleet file gives it no more, by deploys/remove.py."""
    if plan.cluster is None and found.files.get(layout.pair_unit_file(plan.name)) is not None:
        yield StringCommand(layout.PYTHON, PAIR_UNIT, "end", QuoteString(plan.name))


def _key_made(plan: ServicePlan) -> Generator[PyinfraCommand, None, None]:
    """Have the host make an API key, since the fleet file opens the service to others and names none."""
    variable = key_variable(plan)
    assert variable is not None
    yield StringCommand(layout.PYTHON, API_KEY, QuoteString(plan.name), variable)
    host.log(
        f"{plan.name}: it listens on {plan.service.listen}, and the fleet file names no api_key, so this host has made "
        f"one. It is the value of {variable} in {key_file(plan)} on {host.name} (root's, mode 0600), and stays",
    )


def neighbours_told(services: HostPlan, found: ServiceState) -> Generator[PyinfraCommand, None, None]:
    """Have the host know which services belong on it together; one that is left over makes way for them."""
    beside = services_file(services)
    if found.files.get(beside.path) == hashlib.sha256(str(beside.content).encode()).hexdigest():
        return
    differs(beside.path, "does not name the services that the fleet file gives this host")
    there = host.get_fact(HostReleases) or {}
    for name in sorted(set(there) - {one.name for one in services.services}):
        host.log(
            f"service {name} is on this host, and the fleet file does not have it: it makes way when another service "
            "starts. To take it off: deploys/remove.py",
            log_func=logger.warning,
        )
    yield from settle([beside])
    yield StringCommand(layout.PYTHON, NEIGHBOURS, "settle")


@dataclass(frozen=True)
class Start:
    """A start that is to come: what for, and what was found."""

    plan: ServicePlan
    services: HostPlan
    release: Release
    files: tuple[HostFile, ...]
    found: ServiceState
    action: Action


def prepared(start: Start) -> Generator[PyinfraCommand, None, Reckoned | None]:
    """Refuse a start for which the host lacks something, has no room or something in the way. Nothing is stopped."""
    plan, release, found = start.plan, start.release, start.found
    missing = lacking(release, found)
    yield from required(
        not missing,
        f"{host.name}: service {plan.name} can not start, the host lacks {'; '.join(missing)}. "
        "What runs was left running. Run those stages first.",
    )
    yield from required(
        found.reboot is None or not _has_gpu(plan) or start.action is Action.ATTACH,
        f"{host.name}: service {plan.name} is not started: {found.reboot}, so no container gets the GPU until this "
        "host is restarted: sudo reboot, and run again. What runs was left running.",
    )
    if start.action is not Action.ATTACH:
        yield from _nothing_in_the_way(plan, start.services)
    reckoned = memory_of(start.services, plan, release.commit) if found.model_is_here else None
    yield from room_for(plan, reckoned)
    return reckoned


def _started(start: Start) -> Generator[PyinfraCommand, None, None]:
    plan, release, found = start.plan, start.release, start.found
    reckoned = yield from prepared(start)
    for change in changes(release, start.files, found):
        logger.debug("%s: %s: %s", host.name, plan.name, change)
    if start.action is not Action.ATTACH:
        yield StringCommand(layout.PYTHON, LEDGER, "stage", _stdin=stage_request(start, reckoned))
    why = ""
    if start.action is Action.RESTART:
        why = told(found.outdated)
        host.log(f"{plan.name} is restarted, since it still has what was there before: {why}")
    job = start_job(plan, release.id, attach=start.action is Action.ATTACH, why=why)
    yield start_command(job)
    yield FunctionCommand(follow_start, (job, plan.name, release.id), {})


def _has_gpu(plan: ServicePlan) -> bool:
    container = plan.service.container if plan.service.container is not None else plan.engine.container
    return container.gpus


def _nothing_in_the_way(plan: ServicePlan, services: HostPlan) -> Generator[PyinfraCommand, None, None]:
    """Refuse a host on which something else has the service's port, or another engine runs, before anything is stopped.

    The unit's memory gate would refuse such a start, and then that of the release before it.
    """
    if takes_over(host) and not state.is_executing:
        # What is there now makes way; that is noted on the host when the run is on.
        return
    service, engines = plan.service, watched_engines(plan)
    holder = host.get_fact(PortHolder, service=plan.name, listen=service.listen, port=service.port)
    if holder is not None and not plan.is_worker:
        yield foreseen(
            f"{host.name}: service {plan.name} can not start: its port {service.port} is taken by {holder}. "
            "Nothing was stopped, that program neither. Stop it, or give the service another port "
            f"(services.{plan.name}.port)."
        )
    ours = sorted(each.name for each in services.services)
    strangers = host.get_fact(StrangeEngines, patterns=engines, services=ours) if engines else None
    if strangers:
        yield foreseen(
            f"{host.name}: service {plan.name} is not started beside another engine, which its memory plan does not "
            f"count in: {'; '.join(strangers)}. Nothing was stopped, that engine neither. Stop it, or have it run as a "
            f"service of the fleet file; services.{plan.name}.memory_plan: warn starts it all the same."
        )


def _refused(
    plan: ServicePlan, release: str, bad: Barred, found: ServiceState
) -> Generator[PyinfraCommand, None, None]:
    """Fail at once, with the server that runs untouched, unless what an earlier run has begun is to be ended first."""
    if found.pending is not None:
        serves = ""
    elif found.unit.active == "active":
        serves = f" Release {found.current} serves, and was left running."
    else:
        serves = f" Release {found.current} is in force, and its unit is {found.unit.active}."
    message = (
        f"{host.name}: service {plan.name}: release {release} is not tried again unchanged: {bad.text()}.{serves} "
        f"Change the service in the fleet file, or set TINDERBOX_FORCE=1 to have this release tried once more; what "
        f"became of each release: pyinfra inventory.py deploys/history.py"
    )
    if found.pending is not None:
        job = settle_job(plan)
        yield start_command(job)
        yield FunctionCommand(follow, (job, start_command(job)), {})
        # Not foreseen: a host that is known to be refused is left out of the change, and this is to be ended.
        yield refusal(message)
        return
    yield foreseen(message)
