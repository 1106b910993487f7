"""What the model says, as a chain of tokens: each token is followed by the next, whatever came before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modules.lab.model.tokenizer import CHANNEL, MESSAGE

# After `<|start|>assistant`, the end of every Harmony prompt, comes the header of the final channel; then the text,
# again and again. No piece may occur twice, for a token has one successor only.
_HEADER: tuple[str | int, ...] = ("assistant", CHANNEL, "final", MESSAGE)
TEXT = (
    "A", " small", " spark", " lights", " the", " tinder", ";",
    " from", " one", " file", " grows", " an", " entire", " fleet", ",",
    " where", " every", " host", " must", " prove", " its", " speed", " before", " anybody", " trusts", " it", ".\n",
)  # fmt: skip


def chain(ranks: Mapping[bytes, int]) -> list[int]:
    """The tokens of header and text, in order."""
    return [piece if isinstance(piece, int) else ranks[piece.encode()] for piece in (*_HEADER, *TEXT)]


def successors(tokens: Sequence[int]) -> list[int]:
    """For each token of the chain, which place comes next; the text's last is followed by its first."""
    first = len(_HEADER)
    return [*range(1, len(tokens)), first]


def opening() -> int:
    """The place of the text's first token: what follows any token outside the chain."""
    return len(_HEADER)
