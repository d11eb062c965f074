"""The docs as a reader meets them: each page runs from top to bottom in an empty folder, and the site builds.

Pages show what full training gave. Here it is cut short, so the numbers that a command prints are not
compared, only the words around them; what a Python block prints must hold as it stands.
"""

import ast
import doctest
import importlib.util
import inspect
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer

import varnn
from benchmarks.service.process import Served
from varnn import baselines, datasets, evaluation, monitoring, report, service, streaming
from varnn.cli import app as cli
from varnn.service import Client

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MASKS = {
    r"(< )?-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?": "#",
    r"below|above": "beside",
    r"\([^)]*\)": "()",  # confidence and p in words
    r"[━─]+": "─",  # widths of a table
}
_LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ADDRESS = "127.0.0.1:8000"  # of a service that a page begins; here it has another port
ADAPTED = {"sktime", "mlflow", "skops"}  # libraries that are not in the lock
KINDS = {
    "python",  # run as doctests
    "py",  # calls of other libraries, which need not be installed: they must parse
    "console",  # lines after "$" are run, and what follows them is expected
    "bash",  # not run; commands of ours must be understood
    "text",
    "json",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty folder to work in, with training cut short."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setattr("varnn.fitting.settings.STEPS", 120)
    monkeypatch.setattr("varnn.fitting.settings.EPOCHS", 3)
    return tmp_path


def blocks(page: Path) -> list[tuple[str, str]]:
    """Give kind and text of each fenced block of a page."""
    return [(match[1], match[2]) for match in _FENCE.finditer(page.read_text())]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", [one for one in PAGES if blocks(one)], ids=named)
@pytest.mark.usefixtures("folder")
def test_every_block_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    with ExitStack() as stack:
        run_blocks(page, names, monkeypatch, stack)
        if "client" in names:
            names["client"].close()


def run_blocks(page: Path, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> None:
    address = ADDRESS
    for kind, block in blocks(page):
        text = block.replace(ADDRESS, address)
        assert kind in KINDS, f"a block must be one of {sorted(KINDS)}; this one is {kind!r}:\n{text}"
        if kind == "python" and not absent(text):
            run_python(text, names, named(page))
        elif kind == "py":
            ast.parse(text)
        elif kind == "console":
            run_console(text, monkeypatch)
        elif kind == "bash":
            understand(text)
            if text.endswith("\nvarnn serve house.varnn\n") and address == ADDRESS and uses_curl(page):
                served = stack.enter_context(Served(Path("house.service"), ["house.varnn"]))
                address = f"127.0.0.1:{served.address()}"
                with Client(f"http://{address}", patience=120.0) as client:
                    client.get("/readyz")


def absent(text: str) -> list[str]:
    """Libraries of a block that are for its adapter alone, and not here: ``make adapters`` runs it, too."""
    imported = set(re.findall(r"^>>> (?:from|import) (\w+)", text, re.MULTILINE))
    return [one for one in sorted(imported & ADAPTED) if importlib.util.find_spec(one) is None]


def uses_curl(page: Path) -> bool:
    """Tell whether a page speaks to the service that it begins; then it is begun."""
    used = "curl -s -d" in page.read_text()
    if used and shutil.which("curl") is None:
        pytest.skip("the page calls curl, which is not here")
    return used


def run_python(text: str, names: dict[str, Any], page: str) -> None:
    assert text.startswith(">>> "), f"a block of Python must be a doctest, so that it is run:\n{text}"
    test = doctest.DocTestParser().get_doctest(text, names, page, page, 0)
    said = io.StringIO()
    doctest.DocTestRunner(optionflags=_LOOSE).run(test, out=said.write, clear_globs=False)
    names.update(test.globs)
    assert not said.getvalue(), said.getvalue()


def run_console(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, want = step.replace("\\\n", " ").partition("\n")
        got, code = run_varnn(command, monkeypatch) if command.startswith("varnn ") else run_shell(command)
        assert code == (2 if want.startswith("error:") else 0), f"{command}\n{got}"
        assert doctest.OutputChecker().check_output(masked(want), masked(got), _LOOSE), (
            f"{command}\nthe page says:\n{want}\nit said:\n{got}"
        )


def run_varnn(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """Run our command in this process, which spares seconds of imports; ``< file`` gives its input."""
    line, _, source = command.partition(" < ")
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    given = Path(source).read_bytes() if source else b""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as end:
        cli.main()
    return said.getvalue(), int(str(end.value.code))


def run_shell(command: str) -> tuple[str, int]:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr, done.returncode


def masked(text: str) -> str:
    """Leave the words of an output that do not depend on numbers."""
    for pattern, left in _MASKS.items():
        text = re.sub(pattern, left, text)
    return text


def understand(text: str) -> None:
    """Let the parser of our command read the lines that call it: names of options must exist."""
    for line in text.replace("\\\n", " ").splitlines():
        _, found, words = line.partition("varnn ")
        if not found or line.startswith(("git ", "pip ", "cd ", "cp ")):
            continue
        command, arguments = typer.main.get_command(cli.app), shlex.split(words, comments=True)
        while hasattr(command, "commands"):
            command = command.commands[arguments.pop(0)]
        command.make_context("varnn", arguments)


@pytest.mark.parametrize("script", EXAMPLES, ids=named)
def test_an_example_runs_on_small_data(
    script: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), "--rows", "400"])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    assert len(script.read_text().splitlines()) < 60


def test_the_page_of_the_command_is_what_its_help_says() -> None:
    tool = runpy.run_path(str(ROOT / "docs" / "tools" / "cli_page.py"))
    assert tool["PAGE"].read_text() == tool["page"](), "run: python docs/tools/cli_page.py"


def test_the_page_of_the_interface_is_what_its_document_says() -> None:
    tool = runpy.run_path(str(ROOT / "docs" / "tools" / "http_page.py"))
    assert tool["PAGE"].read_text() == tool["page"](), "run: python docs/tools/http_page.py"


def test_the_errata_page_has_the_figures_of_the_results() -> None:
    """Each figure with three decimals or more, and each signed percentage, is one of results.md."""
    results = (ROOT / "docs" / "reproduction" / "results.md").read_text()
    page = (ROOT / "docs" / "concepts" / "the-paper.md").read_text().replace("−", "-")
    figures = re.findall(r"\d\.\d{3,}", page) + [f"{one}%" for one in re.findall(r"[+-]\d+\.\d\b", page)]
    assert len(figures) > 50
    assert [one for one in figures if one not in results] == []


def test_every_public_name_is_in_the_reference() -> None:
    written = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    for name in varnn.__all__:
        assert re.search(rf"^::: varnn\.(\w+\.)*{name}\b", written, re.MULTILINE), f"{name} has no entry"
    for room in (baselines, datasets, evaluation, monitoring, report, service, streaming):
        for name in room.__all__:
            thing = getattr(room, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                entry = rf"^::: {room.__name__}\.{name}$"
                assert re.search(entry, written, re.MULTILINE), f"{room.__name__}.{name} has no entry"


def test_the_site_builds_without_a_warning_and_asks_no_other_host(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the docs need mkdocs-material and mkdocstrings-python")
    build = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", *build], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for page in tmp_path.rglob("*.html"):
        asked = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//[^"]+"', page.read_text())
        assert not asked, page
