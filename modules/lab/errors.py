"""What goes wrong with a lab."""

from __future__ import annotations


class LabError(Exception):
    """Says what was wrong and what to do next; shown to the user without a traceback."""
