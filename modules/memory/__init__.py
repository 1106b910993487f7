"""How much memory a service needs, before it is started."""

from modules.memory.advice import Change, Suggestion, nearest
from modules.memory.checkpoint import Checkpoint, describe, from_summary
from modules.memory.plan import LAB_RESERVE, SYSTEM_RESERVE, Machine, Measured, MemoryPlan
from modules.memory.reckon import plan_memory
from modules.memory.serving import Serving, Settings, UnplannableError, serving_of
from modules.memory.table import refusal, table, table_text

__all__ = [
    "LAB_RESERVE",
    "SYSTEM_RESERVE",
    "Change",
    "Checkpoint",
    "Machine",
    "Measured",
    "MemoryPlan",
    "Serving",
    "Settings",
    "Suggestion",
    "UnplannableError",
    "describe",
    "from_summary",
    "nearest",
    "plan_memory",
    "refusal",
    "serving_of",
    "table",
    "table_text",
]
