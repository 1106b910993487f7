"""The o200k tokenizer with gpt-oss's special tokens, in the form of a Hugging Face `tokenizer.json`."""

from __future__ import annotations

import base64
from collections.abc import Mapping

END_OF_TEXT, RETURN, CHANNEL, START, END, MESSAGE, CALL = 199999, 200002, 200005, 200006, 200007, 200008, 200012
VOCABULARY_SIZE = 201088
_FIRST_SPECIAL = 199998
_SPECIAL = {
    199998: "<|startoftext|>", END_OF_TEXT: "<|endoftext|>", RETURN: "<|return|>", 200003: "<|constrain|>",
    CHANNEL: "<|channel|>", START: "<|start|>", END: "<|end|>", MESSAGE: "<|message|>", CALL: "<|call|>",
    200018: "<|endofprompt|>",
}  # fmt: skip
_LETTER_UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LETTER_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
# How o200k cuts text into words before merging (openai/tiktoken, tiktoken_ext/openai_public.py).
_WORDS = "|".join(
    (
        f"{_LETTER_UPPER}*{_LETTER_LOWER}+{_CONTRACTION}",
        f"{_LETTER_UPPER}+{_LETTER_LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


def read_ranks(text: bytes) -> dict[bytes, int]:
    """Token → rank, from the content of a `.tiktoken` file."""
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in text.splitlines() if line)}


def tokenizer_json(ranks: Mapping[bytes, int]) -> dict[str, object]:
    """The content of `tokenizer.json`."""
    printable = _printable()
    spelled = {token: "".join(printable[byte] for byte in token) for token in ranks}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number, text in special_tokens().items()
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": _WORDS}, "behavior": "Isolated", "invert": False},
                byte_level,
            ],
        },
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {spelled[token]: rank for token, rank in ranks.items()},
            "merges": [[spelled[left], spelled[right]] for left, right in _merges(ranks)],
        },
    }


def special_tokens() -> dict[int, str]:
    """Number → text, without a gap up to the end of the vocabulary."""
    return {number: _SPECIAL.get(number, f"<|reserved_{number}|>") for number in range(_FIRST_SPECIAL, VOCABULARY_SIZE)}


def _merges(ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    found: list[tuple[int, int, int, bytes, bytes]] = []
    for token, rank in ranks.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in ranks and right in ranks:
                found.append((rank, ranks[left], ranks[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]


def _printable() -> dict[int, str]:
    """Byte → the character that stands for it in a byte-level vocabulary (GPT-2's table)."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {byte: chr(byte) for byte in kept}
    for byte in range(0x100):
        if byte not in table:
            table[byte] = chr(0x100 + len(table) - len(kept))
    return table
