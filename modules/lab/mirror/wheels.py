"""A wheelhouse as a PEP 503 index, with metadata beside each wheel as in PEP 658.

`index.json` in the wheelhouse maps each project's normalized name to its wheels: file name → sha256.
"""

from __future__ import annotations

import html
import json
import zipfile
from pathlib import Path

from .message import Request, Response, Site, not_found

_METADATA = ".metadata"


def wheel_site(root: Path) -> Site:
    """Serve `/simple/`, `/simple/<project>/`, `/files/<wheel>` and `/files/<wheel>.metadata`."""
    projects: dict[str, dict[str, str]] = json.loads((root / "index.json").read_text())
    wheels = {name for files in projects.values() for name in files}

    def serve(request: Request) -> Response:
        parts = request.path.strip("/").split("/")
        match parts:
            case ["simple"]:
                return _page([(f"/simple/{name}/", name, "") for name in sorted(projects)])
            case ["simple", project] if project in projects:
                return _page([_link(name, sha256) for name, sha256 in sorted(projects[project].items())])
            case ["files", name] if name in wheels:
                return Response(headers={"Content-Type": "application/octet-stream"}, file=root / name)
            case ["files", name] if name.removesuffix(_METADATA) in wheels:
                return Response(
                    headers={"Content-Type": "text/plain"}, body=_metadata(root / name.removesuffix(_METADATA))
                )
        return not_found(request)

    return serve


def _link(name: str, sha256: str) -> tuple[str, str, str]:
    return f"/files/{name}#sha256={sha256}", name, ' data-core-metadata="true" data-dist-info-metadata="true"'


def _page(links: list[tuple[str, str, str]]) -> Response:
    rows = "\n".join(f'<a href="{html.escape(href)}"{more}>{html.escape(name)}</a><br>' for href, name, more in links)
    body = f"<!DOCTYPE html><html><body>\n{rows}\n</body></html>\n"
    return Response(headers={"Content-Type": "text/html; charset=utf-8"}, body=body.encode())


def _metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.count("/") == 1 and n.endswith(".dist-info/METADATA"))
        return archive.read(name)
