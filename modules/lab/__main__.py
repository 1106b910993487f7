"""`python -m modules.lab`: the lab's command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from modules.lab import cables as cabling
from modules.lab import daemon
from modules.lab import down as taking_down
from modules.lab import restart as restarting
from modules.lab import shape as shaping
from modules.lab import up as taking_up
from modules.lab.containers import HostState, states_of
from modules.lab.errors import LabError
from modules.lab.layout import DEFAULT_NAME, Layout
from modules.lab.pieces.piece import cache_directory
from modules.lab.progress import Progress

app = typer.Typer(help="Simulated Sparks on this machine.", no_args_is_help=True, pretty_exceptions_enable=False)
Name = Annotated[str, typer.Option("--name", help="Name of the lab; labs of different names do not meet.")]
Hosts = Annotated[int, typer.Option("--hosts", envvar="LAB_HOSTS", min=1, max=64, help="How many hosts.")]


@app.command()
def up(name: Name = DEFAULT_NAME, hosts: Hosts = 1) -> None:
    """Start the lab, and make what it needs where that is missing."""
    with _errors_shown(), Progress().shown() as progress:
        layout = Layout.named(name)
        states = taking_up.up(layout, hosts, progress)
        progress.say(f"lab {name} is up; its fleet file: {layout.fleet.relative_to(layout.folder.parents[1])}")
    _show(layout, states)


@app.command()
def down(name: Name = DEFAULT_NAME) -> None:
    """Take the lab away, with all that was deployed to its hosts; cached pieces stay."""
    with _errors_shown():
        for what in taking_down.down(Layout.named(name)) or ["nothing: there is no such lab"]:
            typer.echo(f"removed {what}")
        if cache_directory().exists():
            typer.echo(f"kept {cache_directory()}, which makes the next lab quick; `make lab-clean` removes it")


@app.command()
def status(name: Name = DEFAULT_NAME) -> None:
    """Show the containers of the lab. Exit status 1 unless there are some and all of them run."""
    with _errors_shown():
        layout = Layout.named(name)
        client = daemon.connect()
        states = states_of(client, layout) if client is not None else []
    _show(layout, states)
    if not states or any(state.state != "running" for state in states):
        raise typer.Exit(1)


@app.command()
def restart(host: str, name: Name = DEFAULT_NAME) -> None:
    """Restart one host, and wait until it is back."""
    with _errors_shown():
        restarting.restart(Layout.named(name), host)


@app.command()
def shape(
    host: str,
    name: Name = DEFAULT_NAME,
    mbit: Annotated[float | None, typer.Option(min=0.1, help="Mbit/s each way; without it, no limit.")] = None,
) -> None:
    """Give a host, or the mirror, a slow link."""
    with _errors_shown():
        shaping.shape(Layout.named(name), host, mbit)


@app.command()
def cable(
    ends: Annotated[list[str], typer.Argument(help="Pairs of ends, as spark-1/f0 spark-2/f0.")],
    name: Name = DEFAULT_NAME,
) -> None:
    """Lay QSFP cables between hosts, in place of those that are there; a restart of a host takes its cables away."""
    if len(ends) % 2:
        raise typer.BadParameter("each cable has two ends")
    split = [(end.partition("/")[0], end.partition("/")[2]) for end in ends]
    with _errors_shown():
        cabling.cable(Layout.named(name), list(zip(split[::2], split[1::2], strict=True)))


@app.command()
def clean(name: Name = DEFAULT_NAME) -> None:
    """Take the lab away, and the cached pieces, too."""
    with _errors_shown():
        for what in taking_down.clean(Layout.named(name)):
            typer.echo(f"removed {what}")


def _show(layout: Layout, states: list[HostState]) -> None:
    for state in states:
        reached = (
            f"ssh -F {layout.ssh_config} {state.host}"
            if state.host.startswith("spark-")
            else f"https on 127.0.0.1:{state.port}"
        )
        typer.echo(f"  {state.host:<10} {state.state:<10} port {state.port}   {reached}")


@contextmanager
def _errors_shown() -> Iterator[None]:
    try:
        yield
    except LabError as error:
        typer.echo(f"lab: {error}", err=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    app(prog_name="python -m modules.lab")
