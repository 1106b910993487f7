"""Sites that are a folder of files: the encodings and the apt repositories."""

from __future__ import annotations

from pathlib import Path

from .message import Request, Response, Site, not_found


def static_site(root: Path) -> Site:
    """Serve the files under `root`, and nothing outside it."""

    def serve(request: Request) -> Response:
        path = (root / request.path.lstrip("/")).resolve()
        if not path.is_relative_to(root.resolve()) or not path.is_file():
            return not_found(request)
        return Response(headers={"Content-Type": "application/octet-stream"}, file=path)

    return serve
