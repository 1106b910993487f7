"""Names and paths of a service on its host: one place for all that write or read them."""

from __future__ import annotations

from pathlib import PurePosixPath

SETTINGS = PurePosixPath("/etc/tinderbox")
STATE = PurePosixPath("/var/lib/tinderbox")
PROGRAMS = PurePosixPath("/usr/local/lib/tinderbox")
ENCODINGS = STATE / "encodings"
PYTHON = "/usr/bin/python3"


def unit_name(service: str) -> str:
    """The systemd unit of a service."""
    return f"tinderbox-{service}.service"


def watch_unit_name(service: str) -> str:
    """The unit that watches whether a service still generates. No service can have a name with @ in it."""
    return f"tinderbox-watch@{service}.service"


def watch_unit_file(service: str) -> str:
    """Where that unit's text lies."""
    return f"/etc/systemd/system/{watch_unit_name(service)}"


def container_name(service: str) -> str:
    """The container that the unit runs."""
    return f"tinderbox-{service}"


def unit_file(service: str) -> str:
    """Where the unit's text lies."""
    return f"/etc/systemd/system/{unit_name(service)}"


def environment_file(service: str) -> str:
    """Environment without secrets (0644)."""
    return str(SETTINGS / f"{service}.env")


def secret_file(service: str) -> str:
    """Environment with secrets (0600)."""
    return str(SETTINGS / f"{service}.secret.env")


def key_file(service: str) -> str:
    """The API key that the host has made, where the fleet file names none: as an environment file (0600)."""
    return str(SETTINGS / f"{service}.key.env")


def memory_file(service: str) -> str:
    """What memory gate and load guard read. Not part of the release: it is reckoned from it and from its neighbours."""
    return str(SETTINGS / f"{service}.memory.json")


def services_file() -> str:
    """The services that the fleet file gives this host, whose memory plans count each other in."""
    return str(SETTINGS / "services.json")


def before_file(service: str) -> str:
    """How much memory was available before the service's last start. A boot forgets it."""
    return f"/run/tinderbox/{service}.before"


def label_file(service: str) -> str:
    """Labels of the container; they carry the release's id, which the unit's text can not (the id is its hash)."""
    return str(SETTINGS / f"{service}.labels")


def pair_unit_name(service: str) -> str:
    """The unit that keeps a service together over its hosts. No service can have a name with @ in it."""
    return f"tinderbox-pair@{service}.service"


def pair_unit_file(service: str) -> str:
    """Where that unit's text lies."""
    return f"/etc/systemd/system/{pair_unit_name(service)}"


def pair_file(service: str) -> str:
    """Who belongs to the service's cluster, and where the head is."""
    return str(SETTINGS / f"{service}.pair.json")


def pair_key_file(service: str) -> str:
    """By what the members know each other (0600)."""
    return str(SETTINGS / f"{service}.pair.key")


def cache_directory(service: str, cache: str) -> str:
    """A cache of the engine that outlives its container: a link that each start sets (modules/hostside/caches.py)."""
    return str(STATE / "caches" / service / cache)


def snapshot_directory(home: str, repository: str, commit: str) -> str:
    """A model's files in an ordinary Hugging Face home."""
    return f"{model_directory(home, repository)}/snapshots/{commit}"


def model_directory(home: str, repository: str) -> str:
    """A model's place in the hub cache."""
    return f"{hub_cache(home)}/models--{repository.replace('/', '--')}"


def hub_cache(home: str) -> str:
    """`HF_HUB_CACHE` of a Hugging Face home. Blobs are shared between models, so it is mounted whole or not at all."""
    return f"{home}/hub"


def failure_log(service: str, release: str) -> str:
    """What a failed start of a release has logged."""
    return str(STATE / "ledger" / service / f"{release}.failed.log")


def gate_result_file(service: str, release: str) -> str:
    """The last measurement of a release, with its judgement."""
    return str(STATE / "gates" / service / f"{release}.json")


def endpoint(listen: str, port: int) -> str:
    """URL by which the host itself reaches a service."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)  # noqa: S104
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
