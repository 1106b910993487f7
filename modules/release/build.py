"""A service as the fleet file wants it, on one host → its release and the files that make it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from modules.fleet import ServicePlan
from modules.release import layout
from modules.release.arguments import engine_command
from modules.release.container import environment, found_at_start, mounts, run_arguments
from modules.release.unit import UnitText, render_unit, render_watch
from modules.spec.engine import Flags
from modules.spec.model import Model
from modules.spec.release import Member, Release


@dataclass(frozen=True)
class Surroundings:
    """What a release depends on besides the fleet file.

    `image`: content-addressed reference. `commit`: of the model on the host. `home`: its Hugging Face home. `systemd`:
    the host's version. `secrets`: environment variable → value; only a fingerprint of a value enters the release.
    `made_key`: fingerprint of the API key that the host has made, where it is to have one. `draft_commit`: of the
    draft model.
    """

    image: str
    commit: str
    home: str
    systemd: int
    secrets: Mapping[str, str]
    made_key: str | None = None
    draft_commit: str | None = None


def fingerprint(secret: str) -> str:
    """Enough of a secret's hash to see that it changed."""
    return hashlib.sha256(secret.encode()).hexdigest()[:12]


def _asked(plan: ServicePlan) -> tuple[str, ...]:
    """How our programs on the host ask the service."""
    service = plan.service
    words = ["--service", plan.name, "--url", layout.endpoint(service.listen, service.port)]
    words += ["--model", plan.model.served_as]
    # Only where it differs: a release's id is of its unit's text.
    words += [] if plan.model.task == "generate" else ["--task", plan.model.task]
    if key_variable(plan) is not None:
        words += ["--secret-file", key_file(plan), "--key-variable", str(key_variable(plan))]
    return tuple(words)


def _watch(plan: ServicePlan) -> str:
    """Text of the unit that watches the service; empty where the fleet file has none."""
    wish = plan.service.watchdog
    if not wish.enabled or plan.is_worker:
        return ""
    words = (layout.PYTHON, str(layout.PROGRAMS / "watch_service.py"), *_asked(plan))
    how = ("--every", f"{wish.every_s:g}", "--checks", str(wish.checks))
    return render_watch(plan.name, (*words, *how), wish.every_s)


def _await_ready(plan: ServicePlan) -> tuple[str, ...]:
    if plan.is_worker:
        words = [layout.PYTHON, str(layout.PROGRAMS / "await_pair.py"), plan.name]
        return (*words, "--timeout", str(start_seconds(plan)), "--memory", layout.memory_file(plan.name))
    readiness = plan.engine.readiness
    words = [layout.PYTHON, str(layout.PROGRAMS / "await_ready.py"), *_asked(plan)]
    words += ["--timeout", str(start_seconds(plan)), "--memory", layout.memory_file(plan.name)]
    # As `--flag=value`, since an expression may begin with a dash.
    words += [f"--wanted-log={pattern}" for pattern in readiness.wanted_log]
    words += [f"--refused-log={pattern}" for pattern in readiness.refused_log]
    return tuple(words)


def start_seconds(plan: ServicePlan) -> int:
    """How long a start of this engine may take."""
    return math.ceil(plan.engine.readiness.start_minutes * 60)


def key_variable(plan: ServicePlan) -> str | None:
    """The variable by which the engine takes its API key, where the service has one."""
    return plan.engine.api_key_variable if plan.service.api_key is not None or plan.service.is_open else None


def makes_key(plan: ServicePlan) -> bool:
    """Whether the host makes the API key: others can reach the service, and the fleet file names none."""
    return plan.service.api_key is None and key_variable(plan) is not None


def key_file(plan: ServicePlan) -> str:
    """The file on the host that holds the API key, as `VARIABLE=value`; of a service that has one."""
    return layout.key_file(plan.name) if makes_key(plan) else layout.secret_file(plan.name)


def _secret_files(plan: ServicePlan, around: Surroundings) -> Iterator[str]:
    if around.secrets:
        yield layout.secret_file(plan.name)
    if makes_key(plan):
        yield layout.key_file(plan.name)


def _fingerprints(plan: ServicePlan, around: Surroundings) -> dict[str, str]:
    prints = {name: fingerprint(value) for name, value in around.secrets.items()}
    variable = key_variable(plan)
    if makes_key(plan) and variable is not None:
        prints[variable] = around.made_key or "unknown"
    return dict(sorted(prints.items()))


def model_path(plan: ServicePlan, around: Surroundings) -> str:
    """What the engine is told to serve: the snapshot's directory, or the one file in it. No ref names a commit."""
    return _path(plan.model, around.commit, around.home)


def _path(model: Model, commit: str, home: str) -> str:
    directory = layout.snapshot_directory(home, model.repository, commit)
    return directory if model.file is None else f"{directory}/{model.file}"


def _draft(plan: ServicePlan, around: Surroundings) -> dict[str, str]:
    """Placeholders that the flags for a draft model have."""
    wish = plan.service.speculative
    if wish is None or plan.draft is None:
        return {}
    return {
        "draft": _path(plan.draft, around.draft_commit or "unknown", around.home),
        "draft_tokens": str(wish.tokens),
        "draft_tokens_and_one": str(wish.tokens + 1),
    }


def _placeholders(plan: ServicePlan, around: Surroundings) -> dict[str, str]:
    """What the flags stand for on this host."""
    known = {
        "model": model_path(plan, around),
        "port": str(plan.service.port),
        "listen": plan.service.listen,
        "served_as": plan.model.served_as,
        **_draft(plan, around),
    }
    cluster = plan.cluster
    if cluster is None:
        return known
    return known | {
        "nodes": str(len(cluster.hosts)),
        "rank": str(cluster.rank(plan.host)),
        "master_port": str(cluster.port),
        "master": cluster.addresses[cluster.head],
    }


def _flags(plan: ServicePlan) -> Flags:
    spread = plan.engine.multi_node
    return {**plan.flags, **(spread.worker_flags if spread is not None and plan.is_worker else {})}


def _with_aliases(plan: ServicePlan) -> tuple[str, ...]:
    """The engine's command with the service's further names behind the model's own."""
    words: list[str] = []
    for word in plan.engine.command:
        words += (word, *plan.service.aliases) if word == "{served_as}" else (word,)
    return tuple(words)


def _part(plan: ServicePlan, around: Surroundings) -> Member:
    """What the service is on its host."""
    service, engine = plan.service, plan.engine
    encodings = bool(plan.encodings)
    address = None if plan.cluster is None else plan.cluster.addresses[plan.host]
    command = engine_command(_with_aliases(plan), _flags(plan), _placeholders(plan, around))
    run = run_arguments(
        plan.name,
        around.image,
        command,
        container=service.container if service.container is not None else engine.container,
        mounts=mounts(plan.name, engine.caches, home=around.home, encodings=encodings),
        # Who has no API has no key to it either.
        secret_files=() if plan.is_worker else tuple(_secret_files(plan, around)),
        at_start=found_at_start(engine, service.environment, address),
    )
    unit = render_unit(
        UnitText(
            service=plan.name,
            description=f"{plan.model.served_as} on {service.engine} ({service.profile}), by Tinderbox",
            image=around.image,
            run=run,
            await_ready=_await_ready(plan),
            start_s=start_seconds(plan),
            systemd=around.systemd,
            home=around.home,
            listen=service.listen,
            watched=service.watchdog.enabled and not plan.is_worker,
            spans=plan.cluster is not None,
        )
    )
    return Member(
        host=plan.host,
        address=address or "",
        command=command,
        environment=environment(engine, service.environment, home=around.home, encodings=encodings, address=address),
        unit=unit,
        watch=_watch(plan),
    )


def build_release(plan: ServicePlan, around: Surroundings) -> Release:
    """Everything that decides how the service serves. Equal inputs give an equal id, on every host.

    A service that spans hosts is one release on all of them.
    """
    service, cluster = plan.service, plan.cluster
    members = [_part(plan, around)]
    if cluster is not None:
        members = [_part(replace(plan, host=host), around) for host in cluster.hosts]
    head = members[0]
    return Release(
        service=plan.name,
        engine=service.engine,
        profile=service.profile,
        image=around.image,
        model=plan.model.repository,
        commit=around.commit,
        draft=None if plan.draft is None else plan.draft.repository,
        draft_commit=None if plan.draft is None else around.draft_commit or "unknown",
        encodings={name: encoding.sha256 for name, encoding in sorted(plan.encodings.items())},
        command=head.command,
        environment=head.environment,
        secrets=_fingerprints(plan, around),
        unit=head.unit,
        watch=head.watch,
        members=None if cluster is None else tuple(members),
    )
