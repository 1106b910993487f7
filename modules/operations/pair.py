"""A service that spans hosts: its members know each other, have the same release, and follow the head."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, QuoteString, State, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.pair import PairState, ServicePair
from modules.fleet import HostPlan, ServicePlan, load_fleet
from modules.fleet.lock import read_lock
from modules.images.reference import image_reference
from modules.operations.engine import (
    LEDGER,
    PAIR_UNIT,
    Start,
    neighbours_told,
    prepared,
    service_secrets,
    service_there,
    stage_request,
    wanted_release,
)
from modules.operations.managed_files import ManagedFile, settle
from modules.operations.pair_members import member_state, whole
from modules.operations.require import unreadable
from modules.release import layout
from modules.release.decision import Action, changes
from modules.release.files import release_files
from modules.release.unit import render_pair

# The link is looked at once a second; an engine may take a minute to stop, and its memory half a minute to return.
_AGREE_S, _LOOK_S = 150.0, 2.0
_keys: dict[str, str] = {}


def pair_files(plan: ServicePlan) -> list[ManagedFile]:
    """What tells the host whom it belongs to, and the unit that keeps them together."""
    cluster = plan.cluster
    assert cluster is not None
    known = {
        "host": plan.host,
        "head": cluster.head,
        "address": cluster.addresses[cluster.head],
        "port": cluster.link_port,
    }
    return [
        ManagedFile(layout.pair_file(plan.name), json.dumps(known, sort_keys=True) + "\n"),
        ManagedFile(layout.pair_unit_file(plan.name), render_pair(plan.name)),
    ]


@operation()
def pair_linked(plan: ServicePlan) -> Generator[PyinfraCommand, None, None]:
    """Have the members of a service know each other by one key, and the program run that keeps them together.

    + plan: the service, which spans hosts
    """
    if not (yield from whole(plan)):
        return
    files = pair_files(plan)
    found = host.get_fact(ServicePair, service=plan.name, files=[file.path for file in files]) or PairState()
    differ = [
        file for file in files if found.files.get(file.path) != hashlib.sha256(str(file.content).encode()).hexdigest()
    ]
    assert plan.cluster is not None
    others = [member_state(name, plan.name) or PairState() for name in plan.cluster.hosts if name != plan.host]
    keys = {found.key, *(other.key for other in others)}
    new_key = len(keys) > 1 or None in keys
    if not differ and not new_key and found.agent == "active" and found.agent_enabled:
        host.noop(f"{plan.name}: its hosts know each other")
        return
    yield from settle(differ)
    if new_key:
        key = _keys.setdefault(plan.name, secrets.token_hex(32))
        path = QuoteString(layout.pair_key_file(plan.name))
        yield StringCommand("umask 077; cat >", f"{layout.pair_key_file(plan.name)}.new", _stdin=f"{key}\n")
        yield StringCommand("mv", f"{layout.pair_key_file(plan.name)}.new", path)
    yield StringCommand(layout.PYTHON, PAIR_UNIT, "begin", QuoteString(plan.name))


@operation()
def part_staged(plan: ServicePlan, services: HostPlan) -> Generator[PyinfraCommand, None, None]:
    """Have all on a worker that the service's release needs, and its entry in the ledger. Nothing is stopped by that.

    + plan: the service
    + services: all of the host, which share its memory
    """
    if not (yield from whole(plan)):
        return
    image = image_reference(plan.recipe, read_lock(load_fleet().path))
    found = service_there(plan, services.settings.weights.home).of(host)
    if found is None:
        yield from unreadable(f"the state of service {plan.name}")
        return
    release = wanted_release(plan, image, services.settings.weights.home, found, service_secrets(plan))
    files = release_files(release, {}, plan.host)
    yield from neighbours_told(services, found)
    if found.current == release.id and not changes(release, files, found):
        host.noop(f"{plan.name}: this host has release {release.id}")
        return
    start = Start(plan, services, release, files, found, Action.INSTALL)
    reckoned = yield from prepared(start)
    yield StringCommand(layout.PYTHON, LEDGER, "stage", _stdin=stage_request(start, reckoned))


@operation()
def members_here(plan: ServicePlan) -> Generator[PyinfraCommand, None, None]:
    """Refuse a run that has only a part of the hosts that a service spans.

    + plan: the service
    """
    if (yield from whole(plan)):
        host.noop(f"{plan.name}: all of its hosts are in this run")


@operation()
def part_follows(plan: ServicePlan, services: HostPlan | None = None) -> Generator[PyinfraCommand, None, None]:
    """Have a worker be what the head is: the same release in force, running or stopped with it.

    + plan: the service
    + services: all of the host, where it is the fleet file's release that is to serve
    """
    release = None
    if services is not None:
        image = image_reference(plan.recipe, read_lock(load_fleet().path))
        found = service_there(plan, services.settings.weights.home).of(host)
        home = services.settings.weights.home
        release = None if found is None else wanted_release(plan, image, home, found, service_secrets(plan)).id
    assert plan.cluster is not None
    head = plan.cluster.head
    if not disagreement(member_state(plan.host, plan.name), member_state(head, plan.name), release):
        host.noop(f"{plan.name}: as on its head {head}")
        return
    yield FunctionCommand(await_agreement, (plan.name, head, release), {})


def disagreement(mine: PairState | None, head: PairState | None, release: str | None) -> str:
    """How a worker differs from its head, or the head from what is wanted; empty when neither does."""
    if mine is None or head is None:
        return "the host gives no answer" if mine is None else "the head gives no answer"
    if release is not None and (head.current != release or head.active != "active"):
        return f"the head has release {head.current or 'none'} in force, {head.active}, and {release} is wanted"
    if mine.current != head.current:
        return f"release {mine.current or 'none'} is in force, and on the head {head.current or 'none'}"
    if mine.last_good != head.last_good:
        return f"the last good release is {mine.last_good or 'none'}, and on the head {head.last_good or 'none'}"
    if mine.active != head.active:
        return f"the unit is {mine.active}, and on the head {head.active}"
    return "" if mine.enabled == head.enabled else "a boot does here another thing than on the head"


def await_agreement(state: State, host: Host, service: str, head: str, release: str | None) -> bool:
    """Look until this worker is as its head; pyinfra passes `state` and `host` by name."""
    began, why = time.monotonic(), ""
    while time.monotonic() - began < _AGREE_S:
        mine = host.get_fact(ServicePair, service=service, files=[])
        other = state.inventory.get_host(head).get_fact(ServicePair, service=service, files=[])
        why = disagreement(mine, other, release)
        if not why:
            return True
        if release is not None and other is not None and (other.current, other.active) != (release, "active"):
            break
        time.sleep(_LOOK_S)
    host.log(
        f"{host.name}: its part of service {service} is not what it should be: {why}. The hosts of a service agree by "
        f"themselves as soon as they reach each other; look at: journalctl -u {layout.pair_unit_name(service)}",
        log_func=logger.error,
    )
    return False
