"""The encodings and the tokenizer are the real ones."""

from __future__ import annotations

import hashlib

import pytest
import tiktoken
from tokenizers import Tokenizer

from modules.catalog import load_catalog
from modules.lab.layout import ROOT
from modules.lab.model.repository import COMMIT, REPOSITORY, hub
from modules.lab.model.tokenizer import _WORDS, read_ranks, special_tokens
from modules.lab.pieces.encodings import encodings
from tests.lab.lab_driver import Lab

pytestmark = pytest.mark.lab


def test_the_encodings_have_the_published_hashes_and_sizes(lab: Lab) -> None:
    for name, encoding in load_catalog().encodings.items():
        content = (encodings().path / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == encoding.sha256
        assert len(content) == encoding.size


def test_the_models_tokenizer_cuts_text_as_tiktoken_does(lab: Lab) -> None:
    tokenizer = Tokenizer.from_file(str(hub().path / REPOSITORY / COMMIT / "tokenizer.json"))
    ranks = read_ranks((encodings().path / "o200k_base.tiktoken").read_bytes())
    special = {text: number for number, text in special_tokens().items()}
    reference = tiktoken.Encoding("o200k_harmony", pat_str=_WORDS, mergeable_ranks=ranks, special_tokens=special)
    texts = [
        "Hello wörld, it's 12345 naïve\n\n  x=1 🎉 日本語テスト\tÀÉ DON'T",
        "<|start|>system<|message|>You are.<|end|>",
        (ROOT / "LICENSE").read_text(),
    ]
    for text in texts:
        assert tokenizer.encode(text).ids == reference.encode(text, allowed_special="all")
