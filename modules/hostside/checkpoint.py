"""Say what a checkpoint on this host is, by the headers of its weight files and its config, and whether it is whole.

    checkpoint.py DIRECTORY                  a snapshot with .safetensors files
    checkpoint.py DIRECTORY --file X.gguf    a GGUF file in it, with its further parts

Prints one JSON object: `format`, `files`, `bytes` (on the disk), `tensors` (data type → bytes), `config` (config.json
but for long lists of names; a GGUF's metadata; null where there is none), `problems` (a line for each file or tensor
that is not as its header or the index says) and `memory_total` (the host's MemTotal, bytes). Only headers are read: it
takes no time, and no page cache.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.gguf import parts, read_gguf
    from modules.hostside.memory_room import meminfo
    from modules.hostside.safetensors_header import HeaderError, read_header
else:
    from gguf import parts, read_gguf
    from memory_room import meminfo
    from safetensors_header import HeaderError, read_header

INDEX = "model.safetensors.index.json"
# Long lists of names that say nothing about sizes.
_BULKY = {"auto_map", "config_groups", "id2label", "ignore", "label2id", "modules_to_not_convert", "quantized_layers"}


def summarize(directory: Path, file: str | None) -> dict[str, Any]:
    """What `main` prints."""
    if file is not None:
        return {"format": "gguf", **read_gguf(directory / file)}
    problems: list[str] = []
    names, placed = _shards(directory, problems)
    tensors: Counter[str] = Counter()
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        try:
            header = read_header(directory / name)
        except (OSError, HeaderError) as error:
            problems.append(f"{name}: {error.strerror if isinstance(error, OSError) else error}")
            continue
        for tensor in header:
            tensors[tensor.dtype] += tensor.size
            found[tensor.name].append(name)
    problems += _misplaced(found, placed) + _unlisted(found, placed)
    return {
        "format": "safetensors",
        "files": len(names),
        "bytes": sum((directory / name).stat().st_size for name in names if (directory / name).exists()),
        "tensors": dict(tensors),
        "config": _config(directory, problems),
        "problems": problems,
    }


def structure(directory: Path) -> list[str]:
    """What no engine can load: a line for each weight file that is none, and each tensor that is not in its place.

    Nothing of a model that has no .safetensors file here; a tensor that the index does not name does no harm.
    """
    problems: list[str] = []
    names, placed = _shards(directory, problems)
    if not names:
        return []
    found: dict[str, list[str]] = defaultdict(list)
    absent = set()
    for name in names:
        try:
            for tensor in read_header(directory / name):
                found[tensor.name].append(name)
        except HeaderError as error:
            problems.append(f"{name}: {error}")
            absent.add(name)
        except FileNotFoundError:
            problems.append(f"{name}: not here, and the index names it")
            absent.add(name)
    # Of a file that is not to be read, each tensor would be another line.
    there = None if placed is None else {tensor: file for tensor, file in placed.items() if file not in absent}
    return problems + _misplaced(found, there)


def weight_files(directory: Path, file: str | None) -> list[Path]:
    """The files that an engine reads weights from; `file`: the first part of a GGUF model."""
    if file is not None:
        return list(parts(directory / file))
    return [directory / name for name in _shards(directory, [])[0]]


def _shards(directory: Path, problems: list[str]) -> tuple[list[str], dict[str, str] | None]:
    """The weight files, and which of them each tensor belongs in, where an index says so."""
    index = directory / INDEX
    if index.exists():
        try:
            placed = {str(tensor): str(file) for tensor, file in json.loads(index.read_text())["weight_map"].items()}
        except (ValueError, KeyError, AttributeError, TypeError):
            problems.append(f"{INDEX}: no `weight_map` can be read in it")
        else:
            return sorted(set(placed.values())), placed
    names = sorted(path.name for path in directory.glob("*.safetensors"))
    # Mistral's own form of the same weights stands beside the shards.
    names = [name for name in names if not name.startswith("consolidated")] or names
    if not names:
        problems.append(f"{directory}: no .safetensors file")
    return names, None


def _misplaced(found: dict[str, list[str]], placed: dict[str, str] | None) -> list[str]:
    lines = [f"{name}: in {' and '.join(files)}" for name, files in found.items() if len(files) > 1]
    if placed is None:
        return lines
    lines += [
        f"{name}: not in {file}, where the index has it"
        for name, file in placed.items()
        if file not in found.get(name, ())
    ]
    return lines


def _unlisted(found: dict[str, list[str]], placed: dict[str, str] | None) -> list[str]:
    if placed is None:
        return []
    return [f"{name}: in {files[0]}, but not in the index" for name, files in found.items() if name not in placed]


def _config(directory: Path, problems: list[str]) -> dict[str, Any] | None:
    path = directory / "config.json"
    if not path.exists():
        return None
    try:
        config = json.loads(path.read_text())
    except ValueError as error:
        problems.append(f"config.json: {error}")
        return None
    return _compact(config) if isinstance(config, dict) else None


def _compact(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _compact(item) for key, item in value.items() if key not in _BULKY}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--file")
    arguments = parser.parse_args()
    summary = summarize(arguments.directory, arguments.file)
    print(json.dumps(summary | {"memory_total": meminfo()["MemTotal"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
