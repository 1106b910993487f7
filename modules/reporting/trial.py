"""A command line by which one can try a served model at once, from where one sits."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from modules.fleet import ServicePlan
from modules.release import layout
from modules.release.build import key_file, key_variable
from modules.spec.fleet import ResolvedHost

# Of the reply what was said: reasoning stands in a field of its own, and a short answer may be reasoning only. Of an
# error its message.
_REPLY = ("grep", "-oE", '"(content|reasoning\\w*|message)": ?"[^"]+"')


def _shown(path: str | Path) -> str:
    """A path as short as it can be from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def ssh_words(host: ResolvedHost) -> list[str]:
    """How the host is reached: by the fleet's ssh_config or one that lies beside the key (a lab's), else directly."""
    beside = Path(host.ssh.key).with_name("ssh_config") if host.ssh.key is not None else None
    config = host.ssh.config or (beside if beside is not None and beside.is_file() else None)
    if config is not None:
        return ["ssh", "-F", _shown(config), host.name]
    words = ["ssh"]
    words += ["-i", _shown(host.ssh.key)] if host.ssh.key is not None else []
    words += ["-p", str(host.ssh.port)] if host.ssh.port != 22 else []
    return [*words, f"{host.ssh.user}@{host.address}"]


def question(plan: ServicePlan) -> str:
    """A chat completion's body."""
    message = {"role": "user", "content": "Tell me about sparks."}
    body = {"model": plan.model.served_as, "messages": [message], "max_tokens": 64}
    return json.dumps(body, separators=(",", ":"))


def request_words(plan: ServicePlan) -> list[str]:
    """The request, as typed on the host, with its body on standard input.

    An API key goes from its file to curl in a header file of the shell's own, so that no process list shows it.
    """
    url = f"{layout.endpoint(plan.service.listen, plan.service.port)}/v1/chat/completions"
    # A server that is down, or refuses, is told on standard error.
    words = ["curl", "-sS", "--fail-with-body", url, "--json", "@-"]
    variable = key_variable(plan)
    if variable is None:
        return words
    # By sh, which is what sudo lets run unasked (docs/begin.md).
    header = f"sudo sh -c \"sed -n 's/^{variable}=/Authorization: Bearer /p' {key_file(plan)}\""
    return [*words, "-H", f"@<({header})"]


def trial_line(host: ResolvedHost, plan: ServicePlan) -> str:
    """The whole line, for bash: the question, piped by ssh into curl on the host, and of the reply what was said."""
    words = request_words(plan)
    remote = shlex.join(words) if key_variable(plan) is None else shlex.quote(" ".join(words))
    asked = f"echo {shlex.quote(question(plan))} | {shlex.join(ssh_words(host))} {remote}"
    return f"{asked} | {shlex.join(_REPLY)}"
