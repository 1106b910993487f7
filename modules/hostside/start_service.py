"""Put a release of a service in force and see it ready; when it does not get ready, have an earlier one back.

    start_service.py SERVICE RELEASE [--attach] [--ungated] [--forced] [--instead RELEASE] [--by WHO] [--why TEXT]
                             [--rollout TEXT]
    start_service.py SERVICE --settle

Runs as a job, so that neither the wait nor the way back hangs on the controller. The unit's own ExecStartPost decides
what ready means; this follows systemd's account of it and reports the steps that the log shows. `--settle` names no
release: it ends what an earlier program has left undone, or what a failed gate has asked for.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.activation import Pending, alone, read_pending
    from modules.hostside.ledger import Ledger
    from modules.hostside.pair_members import await_members
    from modules.hostside.progress import Progress
    from modules.hostside.release_needs import lacks
    from modules.hostside.release_switch import Switch
    from modules.hostside.service_server import Server
    from modules.hostside.service_unit import unit_name
else:
    import release_story as story
    from activation import Pending, alone, read_pending
    from ledger import Ledger
    from pair_members import await_members
    from progress import Progress
    from release_needs import lacks
    from release_switch import Switch
    from service_server import Server
    from service_unit import unit_name


def activate(switch: Switch, options: argparse.Namespace) -> int:
    """What the command line asks for, once nobody else is at work on the service."""
    ledger, release = switch.ledger, options.release
    if options.settle:
        return switch.settle()
    entry, last_good = ledger.entry(release), ledger.linked("last-good")
    if entry is None:
        print(f"release {release} is not in the ledger ({ledger.entry_file(release)}), or can not be read")
        return 1
    barred = story.bars(entry, release, last_good)
    if barred is not None and not options.forced:
        code = switch.settle()
        print(f"release {release} is not tried again: {barred['event']} at {barred['at']}: {barred.get('note')}")
        return code or 1
    missing = lacks(entry) if options.instead else []
    if missing:
        print(
            f"release {release} can not come back: the host has not {', '.join(missing)} any more. Nothing was changed"
        )
        return 1
    apart = "" if switch.server.runs(release) else await_members(ledger.service, entry, switch.server.sleep)
    if apart:
        print(f"release {release} is not put in force: {apart}. Nothing was changed")
        return 1
    pending = read_pending(ledger)
    mine = pending is not None and pending.release == release
    back, instead = (pending.back, pending.instead) if pending is not None and mine else (None, None)
    back = back or switch.way_back(release)
    aside = pending.aside if pending is not None else ()
    wanted = Pending(release, back, options.ungated, options.by, options.instead or instead, aside)
    return switch.attempt(wanted, attach=options.attach)


def main() -> int:
    """0 when the wanted release is ready."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    parser.add_argument("release", nargs="?")
    parser.add_argument("--settle", action="store_true", help="no release is wanted: end what is under way")
    parser.add_argument("--attach", action="store_true", help="it is starting already: only wait")
    parser.add_argument("--ungated", action="store_true", help="no gate follows: ready is good")
    parser.add_argument("--forced", action="store_true", help="try it although it is known to be bad")
    parser.add_argument("--instead", help="the release that an operator wants to be rid of by this")
    parser.add_argument("--by", default="", help="who asks for it")
    parser.add_argument("--why", default="", help="what has changed on the machine, where the release is the same")
    parser.add_argument("--rollout", default="", help="the rollout and its step that ask for it")
    options = parser.parse_args()
    if (options.release is None) != options.settle:
        parser.error("name a release, or --settle")
    ledger, say = Ledger(options.service), Progress().report
    try:
        with alone(ledger, waits=lambda: say("waiting for another run's start of this service")):
            server = Server(ledger, unit_name(options.service), say)
            return activate(Switch(server, options.why, options.rollout), options)
    except OSError as error:
        print(f"{error}; what was begun is taken up by the next run")
        return 1


if __name__ == "__main__":
    sys.exit(main())
