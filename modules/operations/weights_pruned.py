"""Remove revisions of models that no release needs."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from pyinfra import host
from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.unneeded_weights import UnneededWeights, prune_command
from modules.operations.require import unreadable

_GIB = 1024**3


@operation()
def weights_pruned(home: str, keep: Sequence[str]) -> Generator[PyinfraCommand, None, None]:
    """Have only those verified revisions that the fleet file, a current or a last good release uses.

    What is to go is told with its size, in a dry run, too.

    + home: the Hugging Face home
    + keep: owner/name@commit of what the fleet file wants
    """
    found = host.get_fact(UnneededWeights, home=home, keep=list(keep))
    if found is None:
        yield from unreadable("the list of models that no release needs")
        return
    if not found:
        host.noop("no revision of a model is unneeded")
        return
    for each in found:
        host.log(f"no release needs {each.revision}: {each.bytes / _GIB:.2f} GiB")
    yield prune_command("remove", home, keep)
