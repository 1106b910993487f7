"""One static, self-contained HTML page of a fleet: no script, and nothing that is loaded from elsewhere."""

from modules.reporting.page.render import render_page

__all__ = ["render_page"]
