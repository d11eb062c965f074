"""Run the gallery: python docs/tools/gallery.py [house_load ...] [--recordings FOLDER] [--pages].

What the scripts of `examples/gallery` do, with the figures they give kept in `docs/gallery/results.json`, a
picture of some test rows, and both put into the page of each. `--pages` only writes the pages anew.
`VARNN_DATA_DIR` says where the data sets are; recordings of this machine are made where there are none.
"""

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from varnn import Panel, evaluation
from varnn.evaluation.verdict import in_words
from varnn.report.figures import COLOURS, INK, legend_above, new_figure, to_svg
from varnn.report.provenance import provenance

DOCS = Path(__file__).parents[1]
GALLERY, RESULTS = DOCS / "gallery", DOCS / "gallery" / "results.json"
SCRIPTS = DOCS.parent / "examples" / "gallery"
BEGIN, END = (
    "<!-- Made by docs/tools/gallery.py: run it again, do not edit. -->",
    "<!-- End of figures. -->",
)


class Case(NamedTuple):
    """A script of the gallery: how its rows are had, what it prints at last, and what its picture shows."""

    load: Callable[[Any, Path], Panel]
    more: Callable[[Any, Panel, evaluation.Comparison, Path], list[str]]
    unit: str
    shown: int  # rows of the picture
    what: str


def _recorded(name: str, **settings: Any) -> Callable[[Any, Path], Panel]:
    def load(script: Any, folder: Path) -> Panel:
        path = folder / name
        if not path.exists():
            script.record(path, **settings)
        panel: Panel = script.load(path)
        return panel

    return load


def _other_targets(script: Any, folder: Path) -> list[str]:
    """Say in a line each who predicts the other targets of a recording of this machine."""
    said = []
    for target in script.TARGETS[1:]:
        lines = script.compare(script.load(folder / "server-metrics.csv", target)).rows()
        errors = ", ".join(f"{line['model']} {line['rmse']:.3g}" for line in lines)
        said.append(f"RMSE of {target}: {errors}")
    return said


CASES = {
    "house_load": Case(
        lambda script, _: script.load(19_735),
        lambda script, panel, *_: script.ahead(panel),
        "Wh in ten minutes",
        144,
        "the load of the house on a test day",
    ),
    "air_quality": Case(
        lambda script, _: script.load(8_760),
        lambda script, _, found, __: script.by_station(found),
        "PM2.5, µg/m³",
        168,
        "PM2.5 at one of the stations in a test week",
    ),
    "heart_rate": Case(
        lambda script, _: script.load(53),
        lambda script, _, found, __: script.alarms(found),
        "beats a minute",
        480,
        "the heart rate of a patient of the test part",
    ),
    "server_metrics": Case(
        _recorded("server-metrics.csv", seconds=3600),
        lambda script, _, found, folder: [*_other_targets(script, folder), *script.watch(found)],
        "log10 of kB in a second",
        180,
        "what is written to disk in three test minutes",
    ),
    "write_times": Case(
        _recorded("write-times.csv", writes=3000, folder=Path()),
        lambda script, _, found, __: script.bounds(found),
        "log10 of milliseconds",
        150,
        "the times of 150 test writes",
    ),
}


def run(name: str, recordings: Path) -> dict[str, Any]:
    """Run one case, draw its picture, and give its figures."""
    case, script = CASES[name], importlib.import_module(name)
    panel, start = case.load(script, recordings), time.perf_counter()
    found: evaluation.Comparison = script.compare(panel)
    lines = found.rows()
    more = case.more(script, panel, found, recordings)
    minutes = (time.perf_counter() - start) / 60
    (GALLERY / f"{name.replace('_', '-')}.svg").write_text(picture(case, found))
    kept = ("model", "seeds", "rmse", "mae", "skill", "coverage", "width", "seconds")
    return {
        "command": f"python examples/gallery/{name}.py",
        "made": provenance(),
        "minutes": round(minutes, 2),
        "rows": {part: len(getattr(found.parts, part)) for part in ("train", "validation", "test")},
        "series": panel.n_series,
        "target": of_target(found.parts),
        "lines": [{one: _rounded(line[one]) for one in kept} for line in lines],
        "words": in_words(found),
        "more": more,
    }


def of_target(parts: evaluation.Parts) -> dict[str, float]:
    """Say how far the scored rows are from those that were learnt from."""
    learnt, scored = parts.train.target, parts.test.target
    known = scored[~np.isnan(scored)]
    found = {
        "mean of those learnt from": np.nanmean(learnt),
        "mean of those scored": known.mean(),
        "share scored above all learnt from": np.mean(known > np.nanmax(learnt)),
    }
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def picture(case: Case, found: evaluation.Comparison) -> str:
    """Draw the stretch whose error is the middle one of all stretches: not picked by eye."""
    rows, scored = found.parts.lead_in, found.parts.scored()
    prediction, lower, upper = found.fitted["varnn"].predict(rows, interval=0.9)
    errors = np.where(scored, (prediction - rows.target) ** 2, np.nan)
    begins = [
        begin
        for first, last in zip(rows.starts, rows.starts[1:], strict=False)
        for begin in range(first, last - case.shown + 1, case.shown)
        if not np.isnan(errors[begin : begin + case.shown]).any()
    ]
    begins.sort(key=lambda begin: float(errors[begin : begin + case.shown].mean()))
    chosen = slice(begins[len(begins) // 2], begins[len(begins) // 2] + case.shown)
    figure, (axes,) = new_figure(height=3.0)
    places: Any = np.arange(case.shown)
    if rows.time is not None and rows.time.dtype.kind == "M":
        places = rows.time[chosen]
    blue = COLOURS[0]
    axes.fill_between(
        places, lower[chosen], upper[chosen], color=blue, alpha=0.22, linewidth=0, label="90 % interval"
    )
    axes.plot(places, prediction[chosen], color=blue, linewidth=1.4, label="predicted a row before")
    axes.plot(places, rows.target[chosen], color=INK, linewidth=0.9, label="truth")
    axes.set_ylabel(case.unit)
    legend_above(axes)
    if places.dtype.kind == "M":
        import matplotlib.dates as dates

        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
        axes.xaxis.get_offset_text().set_color(INK)
    described = f"A line of truth and a line of predictions with their 90 % band: {case.what}."
    return to_svg(figure, described, alone=True)


def figures(saved: dict[str, Any]) -> str:
    """Write the table of a case, what it says, and how it was made."""
    head = ["model", "RMSE", "MAE", "skill", "coverage", "width", "fit, s"]
    body = []
    for line in saved["lines"]:
        shares = [_percent(line[one]) for one in ("skill", "coverage")]
        width = "-" if line["width"] is None else f"{line['width']:.3g}"
        numbers = [f"{line['rmse']:.4g}", f"{line['mae']:.4g}", *shares, width, f"{line['seconds']:.2g}"]
        body.append(f"| {line['model']} | " + " | ".join(numbers) + " |")
    made, rows, target = saved["made"], saved["rows"], saved["target"]
    seeds = max(line["seeds"] for line in saved["lines"])
    more = ["", "```text", *saved["more"], "```"] if saved["more"] else []
    return "\n".join(
        [
            "| " + " | ".join(head) + " |",
            "| --- |" + " ---: |" * (len(head) - 1),
            *body,
            "",
            saved["words"],
            *more,
            "",
            f"`{saved['command']}` on {made['date']}: {saved['minutes']:.1f} minutes on {made['machine']}, "
            f"with other work beside it. {rows['train']:,} rows to learn from, {rows['validation']:,} to "
            f"choose on, {rows['test']:,} scored once, of {saved['series']} series; "
            f"the target's mean is {target['mean of those learnt from']:.3g} in the rows to learn from and "
            f"{target['mean of those scored']:.3g} in those scored, of which "
            f"{100 * target['share scored above all learnt from']:.2g} % are above any learnt from; "
            f"{'one seed' if seeds == 1 else f'means over {seeds} seeds'}. varnn {made['varnn']}, "
            f"Python {made['python']}.",
        ]
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def put(page: str, text: str) -> str:
    """Put figures where the page has them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"a page of the gallery must have the lines {BEGIN!r} and {END!r}. Put them back.")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main() -> None:
    """Run what was asked for; write results and pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--recordings", type=Path, default=Path())
    parser.add_argument("--pages", action="store_true")
    chosen = parser.parse_args()
    sys.path.insert(0, str(SCRIPTS))
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in [] if chosen.pages else chosen.cases:
        results[name] = run(name, chosen.recordings)
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    for name, saved in results.items():
        page = GALLERY / f"{name.replace('_', '-')}.md"
        if page.exists():
            page.write_text(put(page.read_text(), figures(saved)))


if __name__ == "__main__":
    main()
