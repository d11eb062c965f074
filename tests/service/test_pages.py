"""The static files: their headers, what they may load, their size, and what no file of ours may do."""

import re
import zlib
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from starlette.applications import Starlette

from tests.service.asgi import ask
from varnn.service.http import pages

APP = Starlette(routes=pages.routes)
ROOT = Path(__file__).parents[2]
OURS = [path for path in pages.PATHS if not path.name.startswith("uPlot")]
BESIDE = {
    "login.html",
    "login.js",
    "docs.html",
    "docs.js",
    "plain.css",
    "uPlot.LICENSE",
}  # not of the page at /


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/login", "text/html; charset=utf-8"),
        ("/docs", "text/html; charset=utf-8"),
        ("/assets/app.js", "text/javascript; charset=utf-8"),
        ("/assets/style.css", "text/css; charset=utf-8"),
        ("/assets/icon.svg", "image/svg+xml"),
        ("/assets/uPlot.LICENSE", "text/plain; charset=utf-8"),
    ],
)
def test_each_file_has_its_type_and_a_strict_policy(path: str, kind: str) -> None:
    answer = ask(APP, "GET", path)
    assert (answer.status, answer.header("content-type")) == (200, kind)
    policy = dict(part.split(" ", 1) for part in (answer.header("content-security-policy") or "").split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["img-src"] == "'self' data:"
    assert "unsafe" not in str(policy)
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("referrer-policy") == "no-referrer"
    assert answer.header("cache-control") == "no-cache"


def test_a_file_that_is_known_is_not_sent_again() -> None:
    first = ask(APP, "GET", "/assets/app.js")
    tag = first.header("etag")
    assert tag is not None
    again = ask(APP, "GET", "/assets/app.js", headers={"if-none-match": f'"other", {tag}'})
    assert (again.status, again.body, again.header("etag")) == (304, b"", tag)
    assert ask(APP, "GET", "/assets/app.js", headers={"if-none-match": '"other"'}).status == 200
    assert ask(APP, "GET", "/assets/list.js").header("etag") != tag


def test_who_takes_gzip_gets_the_same_file_in_fewer_bytes() -> None:
    plain = ask(APP, "GET", "/assets/uPlot.iife.min.js")
    packed = ask(APP, "GET", "/assets/uPlot.iife.min.js", headers={"accept-encoding": "br, gzip"})
    assert packed.header("content-encoding") == "gzip"
    assert packed.header("vary") == plain.header("vary") == "Accept-Encoding"
    assert zlib.decompress(packed.body, wbits=31) == plain.body
    assert len(packed.body) < 0.6 * len(plain.body)


@pytest.mark.parametrize("name", ["index.html", "nothing.js", "..%2fpages.py", "../pages.py", "%00"])
def test_nothing_but_the_assets_is_served_as_one(name: str) -> None:
    assert ask(APP, "GET", f"/assets/{name}").status == 404


def test_a_page_is_only_looked_at() -> None:
    assert ask(APP, "HEAD", "/").status == 200
    assert ask(APP, "POST", "/").status == 405


def test_the_page_is_small() -> None:
    sizes = {path.name: path.stat().st_size for path in pages.PATHS if path.name not in BESIDE}
    assert sum(sizes.values()) < 150_000, sizes


def test_what_the_files_ask_for_is_there_and_ours() -> None:
    names = {path.name for path in pages.PATHS}
    for path in OURS:
        text = path.read_text()
        wanted = re.findall(r'(?:src|href)="/assets/([^"]+)"', text) + re.findall(r"from '\./([^']+)'", text)
        assert set(wanted) <= names, path.name
        outside = re.findall(r"\bhttps?://[a-z][a-z0-9.-]*", text)
        assert set(outside) <= {"http://www.w3.org"}, path.name  # the namespace of SVG, which nothing loads


def test_all_modules_are_fetched_at_once() -> None:
    """A module named by a module alone is fetched only once that one is here: the page names them all."""
    imported = {
        name
        for path in OURS
        if path.suffix == ".js" and path.name not in BESIDE
        for name in re.findall(r"from '\./([^']+)'", path.read_text())
    }
    named = re.findall(r'modulepreload" href="/assets/([^"]+)"', (pages.FOLDER / "index.html").read_text())
    assert sorted(named) == sorted(imported)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_file_makes_markup_of_text_or_needs_what_the_policy_forbids(path: Path) -> None:
    text = path.read_text()
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\('style'"
    )
    assert not re.findall(forbidden, text)
    if path.suffix == ".html":
        assert not re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)


def test_the_wheel_holds_every_file() -> None:
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    for path in pages.PATHS:
        assert f"varnn/{path.relative_to(ROOT / 'src' / 'varnn').as_posix()}" in packed
