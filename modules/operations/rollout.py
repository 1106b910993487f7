"""The operations of a rollout: ask a host whether it needs a turn, hold one back, watch one, tell it the outcome."""

from __future__ import annotations

import time
from collections.abc import Generator

from pyinfra import host, state
from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.files import FileStates
from modules.facts.gate import ServiceGate
from modules.facts.releases import HostReleases, ServiceReleases
from modules.facts.service import ServiceState
from modules.fleet import HostPlan, ServicePlan, load_fleet
from modules.fleet.lock import read_lock
from modules.gating.identity import thresholds_id
from modules.gating.need import why_measure
from modules.hostside.version_changes import told
from modules.images.reference import image_reference
from modules.operations.asked import forced
from modules.operations.engine import service_secrets, service_there, wanted_release
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import refusal, unreadable
from modules.release.build import key_variable, makes_key
from modules.release.decision import Action, decide, turned_away
from modules.release.files import release_files
from modules.release.layout import STATE
from modules.rollout.record import record_here
from modules.rollout.survey import Surveyed, note, surveyed_here
from modules.spec.strategy import Strategy

# On each host; beside the ledgers, which are folders.
RECORD = str(STATE / "ledger" / "rollout.json")
_LOOK_S = 15.0
# A host that is restarted, or a network that is away for a moment, is no verdict on a release.
_SILENT_LOOKS = 3


@operation()
def release_surveyed(plan: ServicePlan, services: HostPlan) -> Generator[PyinfraCommand, None, None]:
    """Tell whether a run would stop or measure the service here, and with which release. Changes nothing.

    + plan: the service
    + services: all of the host
    """
    if _is_prepared():
        host.noop("hosts are asked when the run has begun")
        return
    home = services.settings.weights.home
    image = image_reference(plan.recipe, read_lock(load_fleet().path))
    found = service_there(plan, home).of(host)
    if found is None:
        yield from unreadable(f"the state of service {plan.name}")
        return
    secrets = service_secrets(plan)
    release = wanted_release(plan, image, home, found, secrets)
    action = decide(release, release_files(release, secrets), found, gated=plan.gate is not None)
    barred = None if forced() else turned_away(release, action, found)
    turn = "" if barred is not None else _why_turn(plan, action, found, release.id) or _why_gate(plan)
    seen = (host.get_fact(HostReleases) or {}).get(plan.name)
    # The key that each host has made for itself is the one thing in which like hosts differ.
    variable = key_variable(plan)
    own = {variable} if makes_key(plan) and variable is not None else set()
    wish = release.model_copy(update={"secrets": {k: v for k, v in release.secrets.items() if k not in own}})
    note(
        Surveyed(
            host=host.name,
            service=plan.name,
            wanted=release.id,
            wish=wish.id,
            current=found.current,
            turn=turn,
            barred=barred.text() if barred is not None else "",
            proved_s=seen.proved_s if seen is not None and seen.current == release.id else None,
        )
    )
    host.noop(f"{plan.name}: {turn or (barred.text() if barred is not None else 'as it should be')}")


def _is_prepared() -> bool:
    """Whether pyinfra only looks for what would change, as in a dry run."""
    return host.current_op_hash is not None and not state.is_executing


def _why_turn(plan: ServicePlan, action: Action, found: ServiceState, release: str) -> str:
    """What is to be done with its server, and so why it needs a turn."""
    if action is Action.RESTART:
        return f"restarted: {told(found.outdated)}"
    if action is Action.INSTALL and found.current == release:
        return f"release {release} as its files should be"
    if action is Action.INSTALL:
        return f"release {found.current or 'none'} → {release}"
    return {Action.START: f"{plan.name} is started", Action.ATTACH: "its start is not over"}.get(action, "")


def _why_gate(plan: ServicePlan) -> str:
    """Why what serves is not proved; asked only of what a run leaves running."""
    if plan.gate is None:
        return ""
    found = host.get_fact(ServiceGate, service=plan.name)
    if found is None or found.result is None:
        return "its gate is open"
    why = why_measure(plan.gate, plan.answers, found)
    if why is None and (found.result.judgement or {}).get("thresholds") != thresholds_id(plan.gate):
        why = "its gate has other thresholds"
    if why is None and found.last_good != found.current:
        why = "it was not found good yet"
    return f"measured: {why}" if why is not None else ""


@operation()
def turn_taken(strategy: Strategy) -> Generator[PyinfraCommand, None, None]:
    """Hold this host back where the run would stop more servers at once than the strategy lets; after all have told.

    + strategy: the fleet file's
    """
    if _is_prepared():
        host.noop("which hosts change together is known when all have told")
        return
    names = {one.name for one in state.inventory if state.is_host_in_limit(one)}
    going = [one.name for one in surveyed_here() if one.turn and one.name in names]
    most = strategy.batch_of(len(load_fleet().hosts))
    if host.name not in going or len(going) <= most:
        host.noop("no more hosts than one batch change in this run")
        return
    yield refusal(
        f"{host.name}: {len(going)} hosts would have their turn at once ({', '.join(sorted(going))}), and the fleet "
        f"file's strategy lets {most}: nothing was stopped here. pyinfra alone goes through all hosts together. Use "
        "make converge (python -m modules.converge), which goes canary first and then batch by batch, or pick at most "
        f"{most} by --limit."
    )


@operation()
def service_soaked(plan: ServicePlan, seconds: float) -> Generator[PyinfraCommand, None, None]:
    """Watch until the release in force has served for `seconds` since it was found good; one that does not last fails.

    What was watched here counts too, by this machine's own clock: a host whose clock was set back may tell too little.

    + plan: the service
    + seconds: for how long it must have served
    """
    first: ServiceReleases | None = None
    silent, until, began = 0, 0.0, 0.0
    while True:
        seen = (host.get_fact(HostReleases) or {}).get(plan.name)
        silent = silent + 1 if seen is None else 0
        if seen is None:
            if silent >= _SILENT_LOOKS:
                yield from unreadable(f"how service {plan.name} stands")
                return
            time.sleep(_LOOK_S)
            continue
        if first is None:
            first, began = seen, time.monotonic()
        wrong = _gone_wrong(first, seen)
        if wrong:
            note(Surveyed(host.name, plan.name, wanted=first.current or "", barred=wrong))
            yield refusal(f"{host.name}: {plan.name} did not last while the canary was watched: {wrong}")
            return
        served = max(seen.proved_s or 0, (first.proved_s or 0) + time.monotonic() - began)
        left = seconds - served
        if left <= 0:
            host.noop(f"{plan.name} has served release {seen.current} for {served:.0f} s")
            return
        if not until:
            until = time.time() + left
            host.log(f"{plan.name}: soaking until {time.strftime('%H:%M:%S', time.localtime(until))}")
        time.sleep(min(_LOOK_S, left + 0.2))


def _gone_wrong(first: ServiceReleases, seen: ServiceReleases) -> str:
    """What speaks against a canary since it was first looked at; empty where nothing does."""
    if seen.active != "active":
        return f"its unit is {seen.active}"
    if seen.current != first.current:
        return f"release {seen.current} is in force, and no more {first.current}"
    if seen.invocation != first.invocation:
        return "its server was started again"
    if seen.closed:
        return "it takes no requests of its gateways"
    return "" if seen.proved_s is not None else f"release {seen.current} is not the last good one"


@operation()
def rollout_noted() -> Generator[PyinfraCommand, None, None]:
    """Have beside the ledgers of the host what is known of the rollout that it is a part of."""
    record = record_here()
    if record is None:
        host.noop("this run is no part of a rollout")
        return
    found = host.get_fact(FileStates, paths=[RECORD], pattern="")
    missing = unsettled([ManagedFile(RECORD, record.text())], found or {})
    if not missing:
        host.noop("the host has it already")
    yield from settle(missing)
