"""`python -m tests.pictures`: take the pictures of README and docs anew, of the fleet that TINDERBOX_FLEET names.

Needs Chromium (`apt-get install --no-install-recommends chromium`). Run `make report` before it; the figures of
`report-failed.png` are made up (tests/unit/report_samples.py), and its caption says so.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from modules.fleet import load_fleet
from modules.lab.layout import ROOT
from modules.reporting.measured import load_measured
from modules.reporting.page.render import render_page
from modules.reporting.page.write import collected
from modules.reporting.table import rows_of, table_of
from tests.unit.report_samples import FLEET, SLOW

IMAGES = ROOT / "docs" / "images"
_FRAME = (
    '<!doctype html><body style="margin:0"><iframe src="{page}" style="width:{width}px;height:{height}px;border:0">'
)


def shoot(page: Path, target: Path, width: int, height: int, *, dark: bool = False) -> None:
    """One picture. In a frame, since Chromium makes no window as narrow as a phone."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert program is not None, "no Chromium: apt-get install --no-install-recommends chromium"
    frame = page.with_name(f"frame-{target.stem}.html")
    frame.write_text(_FRAME.format(page=page.name, width=width, height=height), encoding="utf-8")
    command = [
        program,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
    ]
    command += [f"--user-data-dir={page.parent}/profile", f"--window-size={width},{height}", f"--screenshot={target}"]
    command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", frame.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    sys.stdout.write(f"{target.relative_to(ROOT)}\n")


def main() -> None:
    """Take all of them."""
    fleet = load_fleet()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = folder / "fleet.html"
        page.write_text(render_page(collected()), encoding="utf-8")
        shoot(page, IMAGES / "report-desktop.png", 1120, 1350)
        shoot(page, IMAGES / "report-phone.png", 390, 1350, dark=True)
        failed = folder / "failed.html"
        # The host alone, without what stands above it.
        bare = "<style>.masthead, .foot, main > :not([id]) {display: none}</style></head>"
        failed.write_text(
            render_page(FLEET.model_copy(update={"hosts": (SLOW,)})).replace("</head>", bare), encoding="utf-8"
        )
        shoot(failed, IMAGES / "report-failed.png", 1120, 1232, dark=True)
        console = Console(width=104, record=True, file=io.StringIO(), force_terminal=True)
        console.print(table_of(fleet, rows_of(fleet, load_measured(fleet.name))))
        table = folder / "table.svg"
        svg = console.export_svg(title="make converge", theme=MONOKAI)
        table.write_text(svg, encoding="utf-8")
        box = svg.partition('viewBox="0 0 ')[2].partition('"')[0].split()
        shoot(table, IMAGES / "table.png", *(round(float(side)) for side in box))


if __name__ == "__main__":
    main()
