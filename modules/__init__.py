"""The parts of Tinderbox. Arrows point one way: roles → operations, facts → fleet → catalog → spec."""

import sys
from importlib.util import find_spec
from pathlib import Path

# What each of the programs needs, and a quick look tells: these come with the rest of requirements.lock.
_WANTED = ("pydantic", "pyinfra", "typer", "yaml")


def _what_is_missing() -> str:
    """What to do where a program is run by a Python that lacks its packages; empty where it has them."""
    missing = [name for name in _WANTED if find_spec(name) is None]
    if not missing:
        return ""
    root = Path(__file__).resolve().parents[1]
    words = " ".join(sys.orig_argv[1:]) or "-m modules.converge"
    return (
        f"{sys.executable} lacks what Tinderbox needs ({', '.join(missing)}): run {root / 'setup.sh'} once, and then "
        f"{root / '.venv/bin/python'} {words}"
    )


if _said := _what_is_missing():
    sys.exit(_said)
