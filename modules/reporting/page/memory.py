"""The memory plan as one bar."""

from __future__ import annotations

from markupsafe import Markup

from modules.reporting.page.scale import Scale
from modules.reporting.page.svg import element, picture
from modules.reporting.report import MemoryReport

WIDTH, HEIGHT = 720.0, 26.0
GIB = 1024**3


def gib(size: int) -> str:
    """As people read it."""
    return f"{size / GIB:.1f} GiB"


def left(memory: MemoryReport) -> int:
    """What the machine has beyond the plan; negative where it has less."""
    return memory.machine_bytes - sum(part.bytes for part in memory.parts)


def memory_bar(memory: MemoryReport) -> Markup:
    """Every part to scale, and what is left."""
    total = sum(part.bytes for part in memory.parts)
    scale = Scale(0, max(total, memory.machine_bytes), 0.0, WIDTH)
    parts, start = [element("rect", x=0.0, y=0.0, width=WIDTH, height=HEIGHT, class_="zone track")], 0
    for index, part in enumerate(memory.parts):
        width = scale(start + part.bytes) - scale(start)
        title = element("title", f"{part.name}: {gib(part.bytes)}")
        parts.append(
            element("rect", title, x=scale(start), y=0.0, width=width, height=HEIGHT, class_=f"part part-{index % 6}")
        )
        start += part.bytes
    label = f"memory: {gib(total)} of {gib(memory.machine_bytes)} planned"
    return picture(WIDTH, HEIGHT, label, *parts, class_="memory", stretched=True)
