from __future__ import annotations

from modules.spec.model import Model
from roles.weights.models import needed

ONE = Model(repository="owner/big", revision="main", size_gib=1, served_as="big", source="test")


def test_a_model_that_two_services_share_is_needed_once() -> None:
    assert needed([ONE, ONE.model_copy(update={"served_as": "other"})]) == [ONE]


def test_another_revision_is_another_model() -> None:
    assert len(needed([ONE, ONE.model_copy(update={"revision": "v2"})])) == 2


def test_who_shares_a_model_gets_at_least_the_files_that_each_wants() -> None:
    gguf = ONE.model_copy(update={"include": ("*.gguf",), "exclude": ("metal/*",)})
    json = ONE.model_copy(update={"include": ("*.json", "*.gguf"), "token": "hub"})

    (both,) = needed([gguf, json])
    assert (both.include, both.exclude, both.token) == (("*.gguf", "*.json"), ("metal/*",), "hub")

    (everything,) = needed([gguf, ONE])
    assert everything.include == ()
