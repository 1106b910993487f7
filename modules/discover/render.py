"""What was found, as people read it: a table, and a fleet file with comments. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from modules.discover.merge import Machine

_DEFAULTS = """\
# What each of them should be. Every key and its default: docs/fleet-file.md; what can be served: docs/models.md.
defaults:
  services:
    # The service's name: its unit is tinderbox-gpt-oss.service.
    gpt-oss:
      engine: vllm-mxfp4           # vLLM with native MXFP4 kernels; others: vllm, sglang, llama-cpp
      model: gpt-oss-120b          # 61 GiB, fetched once and verified
      profile: latency             # one user, long context; others: balanced, throughput
      # The deploy fails when this is not reached: right answers, 50 tok/s decode, 3000 prefill.
      gate: vllm-mxfp4-single-stream
"""
UNKNOWN = "unknown"


def wanted(machines: Sequence[Machine]) -> tuple[list[Machine], list[Machine]]:
    """Those that are Sparks, or look like one and do not say; and the others."""
    chosen = [one for one in machines if one.is_spark or (one.is_spark is None and one.looks)]
    return chosen, [one for one in machines if one not in chosen]


def rows(machines: Sequence[Machine]) -> list[tuple[str, ...]]:
    """Name, model, address, DGX OS, driver, host key; what nobody tells is unknown."""
    return [
        (
            one.name,
            _model(one),
            _address(one),
            (one.told.os or "none") if one.told is not None else UNKNOWN,
            (one.told.driver or "none") if one.told is not None else UNKNOWN,
            f"{one.key.short_kind} {one.key.fingerprint}",
        )
        for one in machines
    ]


def _model(one: Machine) -> str:
    if one.told is None:
        return one.model or UNKNOWN
    simulated = " (simulated)" if "(simulated)" in one.told.gpu else ""
    return (one.told.model or one.told.gpu or UNKNOWN) + simulated


def _address(one: Machine) -> str:
    return one.addresses[0] if one.port == 22 else f"{one.addresses[0]} port {one.port}"


def fleet_name(stem: str) -> str:
    """A fleet's name out of a file's."""
    name = "-".join(part for part in "".join(c if c.isalnum() and c.isascii() else " " for c in stem.lower()).split())
    return name if len(name) > 1 and name[0].isalpha() else f"fleet-{name}".strip("-")


def fleet_file(machines: Sequence[Machine], *, name: str, user: str, path: str, day: str, others: int = 0) -> str:
    """The text of a fleet file of these machines. `path`: where it will be; `day`: when they were found."""
    closed = [one.name for one in machines if one.told is None]
    lines = [
        f"# Found on the local network on {day} by `make discover`, which never writes over this file: it is yours.",
        "#",
    ]
    if closed:
        lines += [
            f"# Not let in yet, so model, DGX OS and driver are unknown: {', '.join(closed)}.",
            f"# With a user and a password of theirs:   make bootstrap FLEET={path}",
        ]
    lines += [f"# Then, from a bare login to a server that has proved its speed:   make converge FLEET={path}"]
    if others:
        lines += [f"# {others} more with sshd did not look like Sparks, and are left out."]
    lines += [
        "",
        f"fleet: {name}",
        "",
        "# How to log in. A key or a file of known hosts that is named here and not there is made by `make bootstrap`.",
        "ssh:",
        f"  user: {user}",
        "  # key: ~/.ssh/id_ed25519         # without it: your SSH agent and your usual keys",
        "  # known_hosts: known_hosts       # with it: no host key is taken but those in this file",
        "",
        _DEFAULTS,
        "hosts:",
    ]
    for one in machines:
        lines += _host(one)
    return "\n".join(lines) + "\n"


def _host(one: Machine) -> list[str]:
    row = rows([one])[0]
    comment = [f"  # {row[1]}, DGX OS {row[3]}, driver {row[4]}" if one.told else "  # model, DGX OS, driver: unknown"]
    more = [each for each in (*one.names, *one.addresses[1:]) if each != one.addresses[0]]
    if more:
        comment.append(f"  # also: {', '.join(more)}")
    comment.append(f"  # host key: {row[5]}")
    port = [] if one.port == 22 else [f"    ssh: {{port: {one.port}}}"]
    return [*comment, f"  {one.name}:", f"    address: '{one.addresses[0]}'", *port]
