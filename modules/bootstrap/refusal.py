"""Why a host is left as it is."""

from __future__ import annotations


class RefusedError(Exception):
    """Ends the work on one host, and on no other. `what`: what is wrong; `todo`: what to do next."""

    def __init__(self, what: str, todo: str) -> None:
        super().__init__(f"{what}; {todo}")
        self.what = what
        self.todo = todo
