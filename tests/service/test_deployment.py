"""Container, compose file, Prometheus and Grafana: held to the options, routes and metrics that there are."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from varnn.cli import app as cli
from varnn.service.http._openmetrics import Counter, Family, Histogram, Info
from varnn.service.http.metrics import Metrics
from varnn.service.http.route_table import ROUTES

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "service"
BOARD = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
COMPOSE = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


def dockerfile() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile, and what they are given."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in text.splitlines() if line.strip()]


def given(instruction: str) -> list[str]:
    return [rest for name, rest in dockerfile() if name == instruction]


def understand(words: list[str]) -> dict[str, Any]:
    """Let our command read its arguments, so that each option there is exists."""
    command, words = typer.main.get_command(cli.app), list(words)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    return dict(command.make_context("varnn", words).params)


def test_the_container_runs_our_command_as_nobody_special() -> None:
    assert given("USER") == ["10001:10001"]
    assert "useradd --uid 10001" in given("RUN")[1]
    after = [name for name, _ in dockerfile()][[name for name, _ in dockerfile()].index("USER") :]
    assert "COPY" not in after
    [entry], [command] = given("ENTRYPOINT"), given("CMD")
    assert json.loads(entry) == ["varnn"]
    [folder] = given("VOLUME")
    words = json.loads(command)
    assert words[0] == "serve"
    read = understand(words)
    assert (Path(read["data"]), read["host"]) == (Path(folder), "0.0.0.0")
    assert given("EXPOSE") == [str(read["port"])]
    assert f"--mode 700 {folder}" in given("RUN")[1]


def test_the_container_asks_after_its_own_health() -> None:
    [check] = given("HEALTHCHECK")
    words = json.loads(check.partition("CMD ")[2])
    assert words[:2] == ["python", "-c"]
    compile(words[2], "healthcheck", "exec")
    [(port, path)] = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", words[2])
    assert [port] == given("EXPOSE")
    assert ROUTES["GET", path] is None, "it has no token"


def test_the_image_is_built_from_files_and_extras_that_there_are() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [wanted] = re.findall(r'"\.\[([\w,]+)\]"', given("RUN")[0])
    assert wanted.split(",") == ["serve", "fast", "mqtt"]
    assert set(wanted.split(",")) <= extras.keys()
    assert not any("torch" in one for name in wanted.split(",") for one in extras[name])
    sources = [one for rest in given("COPY") for one in rest.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ignored[0] == "*"
    assert sorted(sources) == sorted(one[1:] for one in ignored if one.startswith("!"))
    assert all((ROOT / one).exists() for one in sources)
    for module in re.findall(r"python -m ([\w.]+)", " ".join(given("RUN"))):
        assert find_spec(module) is not None


@pytest.mark.parametrize(
    "path", [ROOT / "Dockerfile", EXAMPLES / "compose.yaml", EXAMPLES / "prometheus.yml"]
)
def test_commands_in_comments_are_understood(path: Path) -> None:
    comments = "\n".join(
        line[1:] for line in path.read_text().replace("\\\n#", " ").splitlines() if line.startswith("#")
    )
    found = re.findall(r"\b(?:varnn (?:token|serve)) .*", comments)
    assert found
    for line in found:
        words = shlex.split(line.partition(" > ")[0], comments=True)
        understand(words[1:])


def test_services_of_the_compose_file_find_each_other() -> None:
    for service in SERVICES.values():
        for place in service.get("volumes", ()):
            source = place.split(":")[0]
            assert source in COMPOSE["volumes"] or (EXAMPLES / source).is_file(), place
    assert all(port.startswith("127.0.0.1:") for one in SERVICES.values() for port in one.get("ports", ()))
    assert (EXAMPLES / SERVICES["varnn"]["build"] / "Dockerfile").resolve() == ROOT / "Dockerfile"
    assert given("EXPOSE") == [SERVICES["varnn"]["ports"][0].split(":")[-1]]
    assert SERVICES["varnn"]["volumes"] == ["varnn:/data"]

    [job] = yaml.safe_load((EXAMPLES / "prometheus.yml").read_text())["scrape_configs"]
    [secret] = SERVICES["prometheus"]["secrets"]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    assert job["static_configs"] == [{"targets": [f"varnn:{given('EXPOSE')[0]}"]}]
    kept = COMPOSE["secrets"][secret]["file"].removeprefix("./")
    assert f"/examples/service/{kept}" in (ROOT / ".gitignore").read_text().split()

    [source] = yaml.safe_load((EXAMPLES / "grafana-datasource.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((EXAMPLES / "grafana-dashboards.yaml").read_text())["providers"]
    boards = [one.split(":")[1] for one in SERVICES["grafana"]["volumes"] if ".json" in one]
    assert boards == [SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]]
    assert str(Path(boards[0]).parent) == provider["options"]["path"]


def samples() -> dict[str, set[str]]:
    """Names under which Prometheus knows our metrics, with their labels."""
    found: dict[str, set[str]] = {}
    for one in vars(Metrics("1")).values():
        if isinstance(one, Family):
            labels = set(one.labels)
            if isinstance(one, Histogram):
                found |= {f"{one.name}_bucket": labels | {"le"}, f"{one.name}_count": labels}
            else:
                suffix = "_total" if isinstance(one, Counter) else "_info" if isinstance(one, Info) else ""
                found[one.name + suffix] = labels
    return found


def queries() -> list[tuple[str, str]]:
    """Expression and legend of each line of the dashboard."""
    return [
        (target["expr"], target["legendFormat"])
        for one in BOARD["panels"]
        for target in one.get("targets", ())
    ]


@pytest.mark.parametrize(("expression", "legend"), queries())
def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(expression: str, legend: str) -> None:
    [name] = re.findall(r"\b(?:varnn|process)_\w+", expression)
    labels = samples()[name] | {"job", "instance"}
    grouped = re.findall(r"by \(([\w, ]+)\)", expression)
    used = set(re.findall(r'(\w+)=~?"', expression)) | {one for by in grouped for one in by.split(", ")}
    assert used <= labels
    left = {one for by in grouped for one in by.split(", ")} if grouped else labels
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= left
    assert expression.count("(") == expression.count(")")


def test_the_dashboard_shows_every_metric_of_ours() -> None:
    shown = " ".join(expression for expression, _ in queries())
    ours = {one.name for one in vars(Metrics("1")).values() if isinstance(one, Family)}
    assert {one for one in ours if one.startswith("varnn_") and one not in shown} == set()


def test_panels_of_the_dashboard_are_apart_and_on_the_grid() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    [variable] = [one for one in BOARD["templating"]["list"] if one["name"] == "stream"]
    [(metric, label)] = re.findall(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
    assert label in samples()[metric]


def test_prometheus_itself_takes_its_file() -> None:
    tool = shutil.which("promtool") or pytest.skip("promtool, of Prometheus, is not installed")
    command = [tool, "check", "config", "--syntax-only", str(EXAMPLES / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint_has_nothing_to_say() -> None:
    tool = shutil.which("hadolint") or pytest.skip("hadolint is not installed")
    done = subprocess.run([tool, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
