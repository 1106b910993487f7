"""Run inside an image, by its own Python: which modules import, and which values flags take. Prints one marked line.

python3 -c TEXT '{"modules": [name], "choices": {flag: "module:name.name"}}'
"""

import functools
import importlib
import json
import sys

SAID = "tinderbox-says "


def reason(error: BaseException) -> str:
    """What went wrong, short: some imports fail with a page of text."""
    return f"{type(error).__name__}: {error}"[:500]


def imported(name: str) -> dict[str, object]:
    """A module's version, or why it does not import: whatever it raises, an exit as well."""
    try:
        return {"version": str(getattr(importlib.import_module(name), "__version__", "")) or None}
    except BaseException as error:
        return {"error": reason(error)}


def values(function: str) -> dict[str, object]:
    """What a function without arguments gives, such as `vllm.reasoning:ReasoningParserManager.list_registered`."""
    module, _, names = function.partition(":")
    try:
        give = functools.reduce(getattr, names.split("."), importlib.import_module(module))
        return {"values": sorted({str(value) for value in give()})}  # type: ignore[operator]
    except BaseException as error:
        return {"error": reason(error)}


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    answer = {
        "modules": {name: imported(name) for name in asked["modules"]},
        "choices": {flag: values(function) for flag, function in asked["choices"].items()},
    }
    # Begins a line of its own, whatever the modules have printed.
    print(f"\n{SAID}{json.dumps(answer)}")
