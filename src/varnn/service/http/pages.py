"""The static files of the dashboard as routes: read once, checked by ETag, no inline script.

The pages are the same for everyone and hold no data, so they need no token; what they ask of the API does.
"""

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from varnn.report.inlined import ASSETS, SHARED

FOLDER = Path(__file__).parents[1] / "dashboard"
PATHS = (
    *sorted(FOLDER.iterdir()),
    *(ASSETS / name for name in SHARED),
)  # some are of reports, too
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Kept by the browser, asked about each time: an upgraded service never runs beside an old page.
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True)
class _File:
    """One static file, as it is sent."""

    body: bytes
    packed: bytes
    media_type: str
    tag: str

    @classmethod
    def read(cls, path: Path) -> "_File":
        body = path.read_bytes()
        # Weak, for it names what both encodings say; the same bytes have the same tag after a restart.
        tag = f'W/"{hashlib.sha256(body).hexdigest()[:20]}"'
        return cls(body, gzip.compress(body, mtime=0), _TYPES[path.suffix], tag)

    def answer(self, request: Request) -> Response:
        headers = {**HEADERS, "ETag": self.tag}
        known = request.headers.get("if-none-match", "")
        if self.tag in (one.strip() for one in known.split(",")):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self.packed, headers=headers, media_type=self.media_type)
        return Response(self.body, headers=headers, media_type=self.media_type)


# A table of what there is, not a folder to look into: no path of a request ever reaches the disk.
_FILES = {path.name: _File.read(path) for path in PATHS if path.suffix in _TYPES}


def _page(name: str, path: str) -> Route:
    async def page(request: Request) -> Response:
        return _FILES[name].answer(request)

    return Route(path, page, name=f"page {path}")


async def _asset(request: Request) -> Response:
    found = _FILES.get(request.path_params["name"])
    if found is None or found.media_type == _TYPES[".html"]:
        raise HTTPException(404, "there is no such file; the pages are at /, /login and /docs.")
    return found.answer(request)


routes: list[Route] = [
    _page("index.html", "/"),
    _page("login.html", "/login"),
    _page("docs.html", "/docs"),
    Route("/assets/{name}", _asset, name="asset"),
]
