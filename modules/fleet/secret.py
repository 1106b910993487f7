"""Fetch secrets on the controller. Nothing here ever puts a value into an error."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from modules.fleet.files import from_folder
from modules.spec.secret import SecretReference

_COMMAND_SECONDS = 60.0


class SecretMissingError(Exception):
    """A secret is not where the fleet file says. `looked`: what was tried, and how it went. `todo`: what to do."""

    def __init__(self, looked: str, todo: str) -> None:
        super().__init__(f"{looked}; {todo}")
        self.looked = looked
        self.todo = todo


def fetch(reference: SecretReference, folder: Path) -> str:
    """Fetch the value. `folder`: the fleet file's, from which commands run and relative paths count.

    Raises `SecretMissingError`: it is not there, is empty, or has several lines.
    """
    if reference.env is not None:
        return _one_line(os.environ.get(reference.env, ""), f"environment variable {reference.env}", "set it")
    if reference.file is not None:
        return _from_file(from_folder(reference.file, folder))
    return _from_command(reference.command or (), folder)


def _from_file(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SecretMissingError(f"file {path}: {error.strerror}", "write the secret into it, mode 0600") from None
    except UnicodeDecodeError:
        raise SecretMissingError(f"file {path}: no UTF-8 text", "write the secret into it, mode 0600") from None
    return _one_line(text, f"file {path}", "write the secret into it, mode 0600")


def _from_command(command: tuple[str, ...], folder: Path) -> str:
    shown = f"command `{shlex.join(command)}`"
    todo = "run it yourself to see why"
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False
        )
    except FileNotFoundError:
        raise SecretMissingError(f"{shown}: no such program", "install it, or correct the command") from None
    except subprocess.TimeoutExpired:
        raise SecretMissingError(f"{shown}: no answer in {_COMMAND_SECONDS:.0f} s", todo) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SecretMissingError(f"{shown}: {type(error).__name__}", todo) from None
    if done.returncode != 0:
        # What it printed is not repeated: it may be half of the secret.
        raise SecretMissingError(f"{shown}: exit status {done.returncode}", todo)
    return _one_line(done.stdout, shown, todo)


def _one_line(text: str, looked: str, todo: str) -> str:
    value = text.strip()
    if not value:
        raise SecretMissingError(f"{looked}: empty or not set", todo)
    if len(value.splitlines()) > 1:
        # Environment files hold one line for each.
        raise SecretMissingError(f"{looked}: several lines", "give the secret alone, on one line")
    return value
