"""Report pages in a real browser: quiet, alone, readable in light and dark, on a phone and on paper."""

import re
from pathlib import Path
from typing import Any

import pytest

from varnn.report.page import Report

PHONE, DESK = 360, 1200

# For each piece of text its contrast with what lies behind it, as WCAG reckons it.
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const page = one => { for (let at = one; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor; if (rgba(colour)[3] === 255) return colour; }
    return 'white'; };
  const boxed = (one, back) => { const text = one.getBoundingClientRect();  // shapes drawn beneath its middle
    const [x, y] = [(text.left + text.right) / 2, (text.top + text.bottom) / 2];
    for (const shape of one.closest('svg').querySelectorAll('path, rect')) {
      const at = shape.getBoundingClientRect(), style = getComputedStyle(shape);
      if (at.left <= x && x <= at.right && at.top <= y && y <= at.bottom && style.fill !== 'none'
          && !shape.closest('defs')
          && shape.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING) {
        const fill = rgba(style.fill), opaque = style.opacity * style.fillOpacity * fill[3] / 255;
        back = [0, 1, 2].map(i => opaque * fill[i] + (1 - opaque) * back[i]); } }
    return back; };
  const found = [];
  for (const one of document.querySelectorAll('body, body *')) {
    const own = [...one.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent.trim()).join(' ');
    if (!own.trim() || one.closest('style, script, defs') || !one.getClientRects().length) continue;
    const style = getComputedStyle(one), svg = one.closest('svg');
    const front = rgba(svg ? style.fill : style.color), paper = rgba(page(one));
    const back = svg ? boxed(one, paper) : paper;
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    found.push([one.tagName + ' ' + own.slice(0, 40), (a + 0.05) / (b + 0.05)]);
  }
  return found; }"""
ALIVE = "() => [...document.querySelectorAll('.chart')].every(one => one.classList.contains('live'))"
NAMELESS = """() => [...document.querySelectorAll('img, svg')]
  .filter(one => !(one.getAttribute('alt') || one.getAttribute('aria-label') || '').trim())
  .map(one => one.outerHTML.slice(0, 60))"""


def faults(browser: Any, path: Path, *, scheme: str, width: int, media: str = "screen") -> list[str]:
    """List what is wrong with a page; nothing, if it is as it should be."""
    found: list[str] = []
    asked: list[str] = []
    tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab.on("console", lambda said: found.append(f"console: {said.text}"))
    tab.on("pageerror", lambda error: found.append(f"error: {error}"))
    tab.on("request", lambda request: asked.append(request.url))
    tab.emulate_media(media=media, color_scheme=scheme)
    tab.goto(path.as_uri())
    tab.wait_for_timeout(50)
    tab.wait_for_function(ALIVE)
    found += [f"asks {url}" for url in asked if url != path.as_uri()]
    across = tab.evaluate("document.documentElement.scrollWidth")
    if across > width:
        found.append(f"{across} pixels wide, on a screen of {width}")
    found += [f"without a description: {one}" for one in tab.evaluate(NAMELESS)]
    texts = tab.evaluate(CONTRASTS)
    found += [f"contrast {ratio:.1f}: {text}" for text, ratio in texts if ratio < 4.5]
    if not texts:
        found.append("there is no text")
    tab.close()
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", DESK), ("dark", PHONE)])
def test_a_page_is_quiet_alone_and_readable(browser: Any, page: Path, scheme: str, width: int) -> None:
    assert faults(browser, page, scheme=scheme, width=width) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_prints_dark_on_white(browser: Any, page: Path, scheme: str) -> None:
    assert faults(browser, page, scheme=scheme, width=700, media="print") == []
    tab = browser.new_page(color_scheme=scheme)
    tab.goto(page.as_uri())
    tab.emulate_media(media="print", color_scheme=scheme)
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not tab.locator("nav").is_visible()
    printed = tab.pdf(format="A4")
    assert printed.startswith(b"%PDF") and len(printed) > 10_000
    tab.close()


def test_light_and_dark_differ(browser: Any, page: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        tab = browser.new_page(color_scheme=scheme)
        tab.goto(page.as_uri())
        colours.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        tab.close()
    assert colours[0] != colours[1]


def test_links_lead_to_the_parts_of_the_page(browser: Any, page: Path) -> None:
    tab = browser.new_page()
    tab.goto(page.as_uri())
    names = tab.locator("nav a").all_inner_texts()
    titles = [
        tab.locator(str(one.get_attribute("href"))).locator("h2").inner_text()
        for one in tab.locator("nav a").all()
    ]
    assert names == titles and names
    tab.close()


@pytest.mark.parametrize(
    "done", ["<script>document.title = 'done'</script>", "<img alt='' src='x:' onerror='document.title = 1'>"]
)
def test_a_page_runs_no_script_but_its_own(browser: Any, page: Path, tmp_path: Path, done: str) -> None:
    path = tmp_path / "injected.html"
    path.write_text(page.read_text().replace("</main>", f"{done}</main>"))
    tab = browser.new_page()
    tab.goto(path.as_uri())
    tab.wait_for_function(ALIVE)
    assert tab.title() not in ("done", "1")
    tab.close()


FAULTY = {
    "console": "<script>console.error('no')</script>",
    "error": "<script>absent()</script>",
    "asks": "<img alt='a dot' src='http://127.0.0.1:9/dot.png'>",
    "pixels wide": "<div style='width: 900px'>wide</div>",
    "without a description": "<svg width='9' height='9'></svg>",
    "contrast": "<p style='color: #999; background: #fff'>pale</p>",
    "contrast 1": "<svg aria-label='a word'><text y='20' style='fill: #fafafa'>pale</text></svg>",
}


def test_a_page_without_faults_has_none(browser: Any, tmp_path: Path) -> None:
    Report("A page", "", "Without a fault.").write(tmp_path / "good.html")
    assert faults(browser, tmp_path / "good.html", scheme="light", width=PHONE) == []


@pytest.mark.parametrize("fault", FAULTY)
def test_a_fault_is_found(browser: Any, tmp_path: Path, fault: str) -> None:
    path = tmp_path / "faulty.html"
    Report("A page", "", "With a fault.").write(path)
    # Without its policy, which keeps most of these from being done at all.
    page = re.sub(r"<meta http-equiv[^>]*>", "", path.read_text())
    path.write_text(page.replace("</main>", f"{FAULTY[fault]}</main>"))
    found = faults(browser, path, scheme="light", width=PHONE)
    assert any(fault in one for one in found), found
