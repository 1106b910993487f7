"""Say what servers already run, as a fleet file would have them. Changes nothing, unless TINDERBOX_ADOPT says so.

`take`: the fleet file's services take their places; `undo`: they come back (TINDERBOX_SERVICE: one of them).
"""

from pyinfra import host

from modules.fleet import plan_of
from modules.operations.asked import adopt
from roles.adopt import brought, checked, chosen, described, given_back, to_take
from roles.encodings import encodings
from roles.engine import engine
from roles.image import image
from roles.runtime import runtime
from roles.site import site
from roles.weights import weights

plan = plan_of(host)
if adopt() == "take":
    taken = to_take(plan)
    checked(plan=plan, taken=taken)
    site(plan=plan)
    if taken.bare:
        # Its restart of dockerd ends every container, so with one of them to be taken over it is left to make converge.
        runtime(plan=plan)
    image(plan=plan)
    encodings(plan=plan)
    brought(plan=plan, taken=taken)
    weights(plan=plan)
    chosen(plan=plan, taken=taken)
    engine(plan=plan)
elif adopt() == "undo":
    site(plan=plan)
    given_back(plan=plan)
else:
    described(plan)
