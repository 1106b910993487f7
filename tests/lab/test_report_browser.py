"""The page in a real browser (headless Chromium): no error, everything drawn, nothing too wide for a phone.

Needs Chromium (`apt-get install --no-install-recommends chromium`). `TINDERBOX_SCREENSHOTS=folder` keeps pictures.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from modules.reporting.page import render_page
from tests.unit.report_samples import FLEET

pytestmark = pytest.mark.long

PHONE, DESKTOP = 375, 1280
SHELL = """<!doctype html><title>{title}</title><body style="margin:0">
<iframe id="page" src="report.html" style="width:{width}px;height:9000px;border:0"></iframe><pre id="found"></pre>
<script>
document.getElementById("page").addEventListener("load", event => {{
  const page = event.target.contentDocument, view = event.target.contentWindow;
  const boxes = [...page.querySelectorAll("svg")].filter(svg => !svg.closest("details:not([open])"))
    .map(svg => svg.getBoundingClientRect());
  const report = JSON.parse(page.getElementById("report").textContent);
  const shown = Object.fromEntries([...page.querySelectorAll("data")].map(one => [one.dataset.of, +one.value]));
  const expected = report.hosts.flatMap(host => host.services.flatMap(service =>
    (service.gate ? service.gate.metrics : []).flatMap(metric => [
      ["now", metric.now && metric.now.mean], ["std", metric.now && metric.now.std],
      ["last_good", metric.last_good && metric.last_good.mean], ["baseline", metric.baseline && metric.baseline.value],
    ].filter(([, value]) => value !== null)
      .map(([field, value]) => [[host.name, service.name, metric.name, field].join("/"), value]))));
  const style = view.getComputedStyle(page.body);
  document.getElementById("found").textContent = JSON.stringify({{
    drawings: boxes.length,
    undrawn: boxes.filter(box => box.width < 10 || box.height < 10).length,
    width: page.documentElement.scrollWidth,
    outside: [...page.querySelectorAll("main *")].filter(one => !one.closest("svg, details:not([open])")
      && one.getBoundingClientRect().right > {width} + 1).map(one => one.outerHTML.slice(0, 80)),
    small: [...page.querySelectorAll("main :is(p, td, th, small, span, data)")]
      .filter(one => parseFloat(view.getComputedStyle(one).fontSize) < 12).length,
    figures: Object.fromEntries([...page.querySelectorAll("data")].map(one => [one.dataset.of, +one.value])),
    decode: report.hosts[0].services[0].gate.metrics[0].now.mean,
    compared: expected.length,
    differing: expected.filter(([of, value]) => shown[of] !== value || !isFinite(value)).map(([of]) => of),
    background: style.backgroundColor, ink: style.color,
  }});
}});
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and notes what was asked of it."""

    asked: list[str]

    def __init__(self, *arguments: Any, asked: list[str], **more: Any) -> None:
        self.asked = asked
        super().__init__(*arguments, **more)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        self.asked.append(f"{self.path} {int(code)}")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """The page on loopback, with a shell for each width that measures it; and all requests that came."""
    folder, asked = tmp_path / "site", list[str]()
    folder.mkdir()
    (folder / "report.html").write_text(render_page(FLEET), encoding="utf-8")
    for width in (PHONE, DESKTOP):
        (folder / f"{width}.html").write_text(SHELL.format(title=width, width=width), encoding="utf-8")
    handler = functools.partial(Quiet, directory=str(folder), asked=asked)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def chromium(profile: Path, *words: str, dark: bool) -> subprocess.CompletedProcess[str]:
    """Run it once, without any connection of its own."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert program is not None, "no Chromium: apt-get install --no-install-recommends chromium"
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
    command += [f"--user-data-dir={profile}", "--enable-logging=stderr", "--window-size=1300,9100"]
    command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    return subprocess.run([*command, *words], capture_output=True, text=True, check=True, timeout=120)


def seen(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What the shell measured."""
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stdout[:2000]
    document: dict[str, Any] = json.loads(unescape(found[1]))
    return document


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_the_page_in_a_browser(site: tuple[str, list[str]], tmp_path: Path, width: int, dark: bool) -> None:
    url, asked = site
    done = chromium(tmp_path / "profile", "--virtual-time-budget=4000", "--dump-dom", f"{url}/{width}.html", dark=dark)
    found = seen(done)
    assert not re.findall(r"CONSOLE.*", done.stderr)
    assert found["drawings"] > 20
    assert found["undrawn"] == 0
    assert found["width"] <= width
    assert found["outside"] == []
    assert found["small"] == 0
    assert found["figures"]["spark-1/gpt-oss/tg128@pp2048 c1/now"] == found["decode"] == 59.22
    assert found["compared"] > 20
    assert found["differing"] == []
    # Dark has light ink on a dark page, and light the other way round.
    ink, page = (sum(map(int, re.findall(r"\d+", found[name])[:3])) for name in ("ink", "background"))
    assert (ink > page) is dark
    assert {request for request in asked if "favicon" not in request} == {f"/{width}.html 200", "/report.html 200"}


def test_screenshots_can_be_kept(site: tuple[str, list[str]], tmp_path: Path) -> None:
    folder = Path(os.environ.get("TINDERBOX_SCREENSHOTS") or tmp_path).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, dark in (("light", False), ("dark", True)):
        picture = folder / f"report-{name}.png"
        chromium(tmp_path / name, f"--screenshot={picture}", f"{site[0]}/report.html", dark=dark)
        assert picture.read_bytes().startswith(b"\x89PNG")
