"""Become llama-benchy, with the API key out of sight.

It takes a key on its command line only, and every process of the host can read command lines.

Run by the Python that has llama-benchy: benchy.py SECRET_FILE VARIABLE ARGUMENT...
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path


def key_of(path: Path, variable: str) -> str:
    """The variable's value in a docker env file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition("=")
        if name == variable:
            return value
    raise SystemExit(f"{path} has no {variable}")


def given_key(options: argparse.Namespace) -> str | None:
    """The API key that a command line names by `--secret-file` and `--key-variable`, if it does."""
    return key_of(Path(options.secret_file), options.key_variable) if options.secret_file else None


def main() -> None:
    """Give llama-benchy its arguments, in memory only."""
    run = importlib.import_module("llama_benchy.__main__").main
    secret_file, variable, *arguments = sys.argv[1:]
    sys.argv = ["llama-benchy", *arguments, "--api-key", key_of(Path(secret_file), variable)]
    run()


if __name__ == "__main__":
    main()
