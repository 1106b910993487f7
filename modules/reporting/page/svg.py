"""SVG as text. Colours come from the page's style sheet by class, so that plots follow dark and light."""

from __future__ import annotations

from markupsafe import Markup, escape

Attribute = str | float | int | None


def element(name: str, *children: str, **attributes: Attribute) -> Markup:
    """An element; `class_` stands for `class`, other underscores for hyphens; attributes of None are left out."""
    given = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _number(value))
        for key, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(name, given, inner)


def picture(
    width: float, height: float, label: str, *children: str, class_: str = "plot", stretched: bool = False
) -> Markup:
    """A whole drawing that fills its place. `label`: what it shows, for those who do not see it."""
    view, kept = f"0 0 {width:g} {height:g}", "none" if stretched else None
    return element(
        "svg", *children, viewBox=view, preserveAspectRatio=kept, class_=class_, role="img", aria_label=label
    )


def text(x: float, y: float, words: str, *, class_: str = "label", anchor: str | None = None) -> Markup:
    """A line of text."""
    return element("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _number(value: Attribute) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
