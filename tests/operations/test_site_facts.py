"""Facts whose host gives an odd answer: that host fails, with a text, and no other."""

from __future__ import annotations

import pytest
from pyinfra.api.exceptions import FactProcessError

from modules.facts.cuda import CompileProbe
from modules.facts.files import FileStates
from modules.facts.site import SiteSettings


@pytest.mark.parametrize(
    ("fact", "lines"),
    [
        (FileStates(), ["garbage"]),
        (SiteSettings(), ["fresh", "a b c"]),
        (CompileProbe(), ["Traceback (most recent call last):"]),
    ],
)
def test_an_odd_answer_is_shown(fact: FileStates | SiteSettings | CompileProbe, lines: list[str]) -> None:
    with pytest.raises(FactProcessError, match=type(fact).__name__) as failure:
        fact.process(lines)
    assert lines[0] in str(failure.value)
    assert failure.value.__cause__ is None


def test_a_site_is_read() -> None:
    state = SiteSettings().process(["stale", f"{'0' * 64} 600 root:root /etc/a file", "absent - - /b"])
    assert state is not None
    assert not state.trust_is_fresh
    assert [path for path, found in state.files.items() if found is None] == ["/b"]
    assert state.files["/etc/a file"] is not None
