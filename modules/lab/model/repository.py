"""The model as a repository on the lab's hub."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from modules.lab.errors import LabError
from modules.lab.mirror.hub import HubFile, HubIndex
from modules.lab.model.tokenizer import read_ranks, special_tokens, tokenizer_json
from modules.lab.model.weights import config, generation_config, serialize, shards
from modules.lab.pieces.encodings import encodings
from modules.lab.pieces.piece import Piece

REPOSITORY = "tinderbox-lab/gpt-oss-tiny"
# The catalog pins this commit. It is a hash over all files, so whoever changes the model has to change it too.
COMMIT = (Path(__file__).parent / "commit").read_text().strip()
_SHARDS = 3
_LFS_SUFFIXES = (".safetensors", ".bin")
_LFS_NAMES = ("tokenizer.json",)
_CHAT_TEMPLATE = (
    "{%- for message in messages -%}<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}"
)
_README = """---
license: apache-2.0
---
A gpt-oss with made weights, for trying the path from the hub to a served model. It recites one sentence.
"""


def hub() -> Piece:
    """A hub with this one model."""
    vocabularies = encodings()

    def build(folder: Path) -> None:
        work = folder / "work"
        work.mkdir()
        write_files(work, (vocabularies.path / "o200k_base.tiktoken").read_bytes())
        files = listing(work)
        commit = commit_of(files)
        if commit != COMMIT:
            raise LabError(
                f"the lab's model came out as commit {commit}, where modules/lab/model/commit says {COMMIT}: "
                "write the new one there and in the catalog"
            )
        repository = folder / REPOSITORY
        repository.mkdir(parents=True)
        work.rename(repository / commit)
        index: HubIndex = {"refs": {"main": commit}, "commits": {commit: files}}
        (repository / "hub.json").write_text(json.dumps(index, indent=1))

    return Piece("hub", ["1", COMMIT], build, (vocabularies,))


def write_files(folder: Path, o200k: bytes) -> None:
    """Write the repository's files."""
    ranks = read_ranks(o200k)
    weight_map: dict[str, str] = {}
    total = 0
    for number, tensors in enumerate(shards(ranks), start=1):
        name = f"model-{number:05}-of-{_SHARDS:05}.safetensors"
        (folder / name).write_bytes(serialize(tensors))
        weight_map |= {tensor.name: name for tensor in tensors}
        total += sum(len(tensor.data) for tensor in tensors)
    _write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})
    _write_json(folder / "config.json", config())
    _write_json(folder / "generation_config.json", generation_config())
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(ranks), ensure_ascii=False, separators=(",", ":")))
    special = {"bos_token": "<|startoftext|>", "eos_token": "<|return|>", "pad_token": "<|endoftext|>"}
    _write_json(folder / "special_tokens_map.json", special)
    decoder = {str(number): {"content": text, "special": True} for number, text in special_tokens().items()}
    limits = {
        "model_max_length": 131072,
        "clean_up_tokenization_spaces": False,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    _write_json(folder / "tokenizer_config.json", {**special, **limits, "added_tokens_decoder": decoder})
    (folder / "chat_template.jinja").write_text(_CHAT_TEMPLATE)
    (folder / "README.md").write_text(_README)
    # Other programs' forms of the same weights, which stand in the real repositories, too, and which nobody needs here.
    for decoy in ("original/model.safetensors", "metal/model.bin"):
        (folder / decoy).parent.mkdir()
        (folder / decoy).write_bytes(decoy.encode() * (1 << 16))


def listing(folder: Path) -> list[HubFile]:
    """What the hub tells of each file."""
    return [
        _describe(path, path.relative_to(folder).as_posix()) for path in sorted(folder.rglob("*")) if path.is_file()
    ]


def commit_of(files: list[HubFile]) -> str:
    """Forty hex digits that change with any byte of any file."""
    return hashlib.sha1(json.dumps(files, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def _describe(path: Path, name: str) -> HubFile:
    content = path.read_bytes()
    if not name.endswith(_LFS_SUFFIXES) and name not in _LFS_NAMES:
        return {"path": name, "size": len(content), "oid": _blob(content), "sha256": None}
    sha256 = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n"
    return {"path": name, "size": len(content), "oid": _blob(pointer.encode()), "sha256": sha256}


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
