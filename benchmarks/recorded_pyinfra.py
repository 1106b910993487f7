"""The pyinfra command, which also keeps what a host has answered: for `scale_inventory.py`, to the file $ANSWERS."""

from __future__ import annotations

import atexit
import json
import os
from pathlib import Path
from typing import Any

from pyinfra_cli.main import main  # imported first: it patches the standard library for gevent

from pyinfra.connectors import ssh  # isort: skip

# What stands in the commands of the two round trips of a converged run, in one line and without quotes.
MARKS = {"command -v python3 >/dev/null": "preflight", "exec(json.loads(sys.stdin.readline()))": "survey"}
_run = ssh.SSHConnector.run_shell_command
_answers: dict[str, list[str]] = {}


def _kept(self: ssh.SSHConnector, command: Any, *arguments: Any, **keywords: Any) -> Any:
    succeeded, output = _run(self, command, *arguments, **keywords)
    for mark in MARKS:
        if mark in command.get_raw_value():
            _answers[mark] = output.stdout_lines
    return succeeded, output


if __name__ == "__main__":
    ssh.SSHConnector.run_shell_command = _kept  # type: ignore[method-assign]
    atexit.register(lambda: Path(os.environ["ANSWERS"]).write_text(json.dumps(_answers)))
    main()
