"""What this host shows of servers of models that run on it, whoever started them, as one JSON object. Changes nothing.

Processes, the containers and units that they are in, and where their weights lie; how that is understood is the
controller's to say (`modules/adopt`). Sent by standard input, since nothing of ours may be on the host yet. Secrets
stay here: what looks like one is masked before it is printed.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.masking import MASK, masked
else:
    from masking import MASK, masked

PROC = Path("/proc")
# By their own words: `vllm serve`, `python3 /usr/bin/vllm serve`, `python3 -m vllm.entrypoints…`, and the like.
_PROGRAM = re.compile(r"(^|/)(vllm|sglang)$|^(vllm\.entrypoints\.|sglang\.launch_server)|(^|/)llama-server$")
_PYTHON = re.compile(r"(^|/)python[0-9.]*$")
_CONTAINER = re.compile(r"[0-9a-f]{64}")
_SECRET = re.compile(r"(^|[-_])(api[-_]?key|token|secret|passw(or)?d|private[-_]?key|credentials?)$", re.IGNORECASE)
# What models are fed with, which is no secret.
_TELLS_OF_WORDS = re.compile(r"TOKENIZ|TIKTOKEN", re.IGNORECASE)
# Of a process that is in no container; there it is the container's own, all of which counts.
_TELLING = re.compile(
    r"^(VLLM|SGLANG|SGL|LLAMA|GGML|HF|HUGGING_?FACE|TRANSFORMERS|NCCL|GLOO|CUDA|TORCH\w*|PYTORCH|TRITON|FLASHINFER"
    r"|TIKTOKEN|OMP|XDG_CACHE|RAY)_|^HOME$"
)
_STARTS = re.compile(r"\b(docker|podman|vllm|sglang|llama-server)\b")
_UNIT = ("Id", "FragmentPath", "ActiveState", "UnitFileState", "Type", "WorkingDirectory", "ExecStart", "MainPID")


def run(*command: str) -> str:
    """What a program prints; nothing where it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def is_server(words: list[str]) -> bool:
    """Whether a process is a server of models itself, and not one that only speaks of it."""
    if not words or not words[0]:
        return False
    rest = words[1:] if _PYTHON.search(words[0]) else words
    rest = rest[1:] if rest[:1] == ["-m"] else rest
    found = _PROGRAM.search(rest[0]) if rest else None
    return found is not None and (not found[0].endswith(("vllm", "sglang")) or rest[1:2] == ["serve"])


def hidden_words(words: Iterable[str]) -> list[str]:
    """A command line without what is secret in it."""
    told: list[str] = []
    secret = False  # a flag of secrets may take several
    for word in words:
        name, equals, _ = word.partition("=")
        if word.startswith("-"):
            secret = _SECRET.search(name) is not None
            told.append(f"{name}={MASK}" if secret and equals else masked(word))
            secret = secret and not equals
        else:
            told.append(MASK if secret else masked(word))
    return told


def hidden_variables(variables: Iterable[str]) -> dict[str, str]:
    """`NAME=value` → name → value, or the mask."""
    pairs = (one.partition("=") for one in variables if "=" in one)
    return {name: MASK if value and _SECRET.search(name) else _without_name(name, value) for name, _, value in pairs}


def _without_name(name: str, value: str) -> str:
    """A value as it is masked behind its name, which may be what tells of a secret: AWS_SECRET_ACCESS_KEY."""
    if _TELLS_OF_WORDS.search(name):
        return masked(value)
    shown = masked(f"{name}={value}")
    return shown.removeprefix(f"{name}=") if shown.startswith(f"{name}=") else MASK


def _bytes(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode(errors="replace")
    except OSError:  # it has just ended
        return []
    return text.rstrip("\0").split("\0") if text else []


def _status(folder: Path) -> dict[str, str]:
    try:
        lines = (folder / "status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def group_of(folder: Path) -> tuple[str | None, str | None]:
    """(container, unit) of a process, by its control group; a user's own unit is written `user@1000.service/NAME`."""
    try:
        text = (folder / "cgroup").read_text()
    except OSError:
        return None, None
    ids = _CONTAINER.findall(text)
    path = text.splitlines()[-1].partition("::")[2] if text else ""
    units = [part for part in path.split("/") if part.endswith(".service")]
    user = next((part for part in units if part.startswith("user@")), None)
    own = units[-1] if units and units[-1] != user else None
    return (ids[-1] if ids else None), (f"{user}/{own}" if user and own else own)


def processes(proc: Path = PROC) -> list[dict[str, Any]]:
    """The servers; of those that are alike, parent and child, the parent."""
    found: dict[int, dict[str, Any]] = {}
    for folder in sorted(proc.glob("[0-9]*"), key=lambda path: int(path.name)):
        words = _bytes(folder / "cmdline")
        if not is_server(words):
            continue
        status = _status(folder)
        container, unit = group_of(folder)
        environment = hidden_variables(_bytes(folder / "environ"))
        found[int(folder.name)] = {
            "pid": int(folder.name),
            "parent": int(status.get("PPid") or 0),
            "uid": int((status.get("Uid") or "0").split()[0]),
            "words": hidden_words(words),
            "environment": environment,
            "container": container,
            "unit": unit,
            "caches": caches(folder, words, environment),
        }
    return [one for one in found.values() if one["parent"] not in found]


def cache_folders(words: list[str], environment: Mapping[str, str]) -> list[str]:
    """Where a server looks for models of the hub, as it sees its files."""
    home = environment.get("HOME") or "/root"
    own = environment.get("HF_HOME") or f"{environment.get('XDG_CACHE_HOME') or f'{home}/.cache'}/huggingface"
    hub = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or f"{own}/hub"
    folders = [environment.get("LLAMA_CACHE", ""), hub]
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in {"--download-dir", "--download_dir"}:
            folders.insert(0, value if equals else "".join(words[at + 1 : at + 2]))
    told = [word.partition("/models--")[0] for word in words if "/models--" in word and word.startswith("/")]
    return list(dict.fromkeys(path.rstrip("/") for path in [*told, *folders] if path.startswith("/")))


def caches(process: Path, words: list[str], environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """The models that a server's words name, as they lie in the folders where it looks."""
    found = []
    for folder in cache_folders(words, environment):
        # By the process's own view: where a container has it on the host is told by its mounts.
        seen = process / "root" / folder.lstrip("/")
        models = {}
        try:
            entries = sorted(seen.glob("models--*"))
        except OSError:
            continue
        for entry in entries:
            name = entry.name.removeprefix("models--").replace("--", "/", 1)
            if any(name in word or entry.name in word for word in words):
                models[name] = model_in(entry)
        if models:
            found.append({"path": folder, "models": models})
    return found


def model_in(entry: Path) -> dict[str, Any]:
    """What each reference of a model stands for, and the files of each of its commits that are there."""
    references, snapshots = {}, {}
    for path in sorted((entry / "refs").rglob("*")):
        if path.is_file():
            references[path.relative_to(entry / "refs").as_posix()] = path.read_text().strip()
    for commit in sorted((entry / "snapshots").glob("*")):
        files = [path for path in sorted(commit.rglob("*")) if path.is_file()]
        snapshots[commit.name] = {path.relative_to(commit).as_posix(): path.stat().st_size for path in files}
    return {"refs": references, "snapshots": snapshots}


def containers(ids: Iterable[str]) -> dict[str, Any]:
    """Of each container: what docker tells of it and of its image, without secrets."""
    found = {}
    for name in ids:
        told = json.loads(run("docker", "container", "inspect", name) or "[]")
        if not told:
            continue
        image = json.loads(run("docker", "image", "inspect", told[0]["Image"]) or "[]")
        found[name] = {"container": shown(told[0]), "image": shown_image(image[0]) if image else None}
    return found


_HOST = (
    *("NetworkMode", "PortBindings", "RestartPolicy", "AutoRemove", "DeviceRequests", "Devices", "Runtime"),
    *("Privileged", "CapAdd", "IpcMode", "ShmSize"),
)


def shown(told: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `docker container inspect` that matters here."""
    config = told["Config"]
    return {
        "Id": told["Id"],
        "Name": told["Name"],
        "Path": told["Path"],
        "Args": hidden_words([told["Path"], *(told.get("Args") or [])])[1:],
        "Image": told["Image"],
        "Pid": told["State"]["Pid"],
        "Config": {
            "Image": config["Image"],
            "Env": hidden_variables(config.get("Env") or []),
            "Labels": {name: masked(value) for name, value in (config.get("Labels") or {}).items()},
            "Entrypoint": config.get("Entrypoint"),
        },
        "HostConfig": {name: told["HostConfig"].get(name) for name in _HOST},
        "Mounts": [
            {name: mount.get(name) for name in ("Type", "Source", "Destination")} for mount in told.get("Mounts") or []
        ],
    }


def shown_image(told: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `docker image inspect` that matters here."""
    config = told.get("Config") or {}
    return {
        "Id": told["Id"],
        "RepoTags": told.get("RepoTags") or [],
        "RepoDigests": told.get("RepoDigests") or [],
        "Env": hidden_variables(config.get("Env") or []),
        "Entrypoint": config.get("Entrypoint"),
        "Architecture": told.get("Architecture"),
    }


def units(folders: Iterable[Path] = (Path("/etc/systemd/system"), Path("/usr/local/lib/systemd/system"))) -> list[Any]:
    """The units of the host's owner that start a container or a server, as `systemctl show` has them."""
    found = []
    for path in sorted(path for folder in folders for path in folder.glob("*.service")):
        try:
            text = path.read_text()
        except OSError:
            continue
        if path.name.startswith("tinderbox-") or path.is_symlink() or not _STARTS.search(text):
            continue
        lines = run("systemctl", "show", "--property", ",".join(_UNIT), path.name).splitlines()
        told = {name: value for name, _, value in (line.partition("=") for line in lines)}
        told["ExecStart"] = " ".join(hidden_words(told.get("ExecStart", "").split()))
        found.append(told)
    return found


def on_gpu() -> list[dict[str, Any]]:
    """The processes that have memory of the GPU."""
    text = run("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
    pairs = (line.partition(",") for line in text.splitlines() if line.partition(",")[0].strip().isdecimal())
    return [{"pid": int(pid), "name": name.strip()} for pid, _, name in pairs]


def ancestors(pid: int, proc: Path = PROC) -> list[int]:
    """The process and those that started it."""
    found: list[int] = []
    while pid > 0 and pid not in found:
        found.append(pid)
        pid = int(_status(proc / str(pid)).get("PPid") or 0)
    return found


def gather(_: object = None) -> dict[str, Any]:
    """All of it."""
    servers = processes()
    known = {one["pid"] for one in servers}
    inside = containers(dict.fromkeys(one["container"] for one in servers if one["container"]))
    for one in servers:
        if one["container"] not in inside:
            one["environment"] = {name: value for name, value in one["environment"].items() if _TELLING.search(name)}
    return {
        "processes": servers,
        "containers": inside,
        "units": units() if servers else [],
        "gpu": [one for one in on_gpu() if not known & set(ancestors(one["pid"]))],
    }
