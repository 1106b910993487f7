"""A removal whose layers are not understood is refused before any host is contacted."""

from __future__ import annotations

import pytest

from modules.converge.layers import layers_problem
from modules.operations.asked import ASKED_LAYERS

REMOVE = "deploys/remove.py"


@pytest.mark.parametrize("given", ["", "all", "engine, images", "all,access"])
def test_layers_that_there_are_are_taken(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ASKED_LAYERS, given)
    assert layers_problem(REMOVE) is None


# With none at all, single services would be removed instead.
@pytest.mark.parametrize(("given", "named"), [("engin", "engin"), ("all,Images,x", "Images, x"), (" , ", "' , '")])
def test_others_are_refused_by_name(given: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ASKED_LAYERS, given)
    assert layers_problem(REMOVE) == (
        f"TINDERBOX_LAYERS: {named} is no layer; write some of engine, images, weights, system, access, or all"
    )
    assert layers_problem("deploys/spark.py") is None
