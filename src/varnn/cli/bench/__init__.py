"""``varnn bench``: speed against named peers, and how good the default is on what it was not chosen on."""

import typer

from varnn.cli.bench import coverage, fuzz, glitches, horizons, kills, ladder, robustness, speed, streams

app = typer.Typer(help="Measure speed against named peers, and robustness.", no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Measure speed against named peers, interleaved in one run; and robustness."""


for measure in (speed.train, speed.score, speed.stream, speed.growth):
    app.command()(measure)
app.command("all")(speed.everything)
app.command()(speed.page)
for bench, command in (
    ("robustness", robustness.robustness),
    ("robustness-page", robustness.robustness_page),
    ("ladder", ladder.ladder),
    ("ladder-page", ladder.ladder_page),
    ("streams", streams.streams),
    ("streams-page", streams.streams_page),
    ("coverage", coverage.coverage),
    ("coverage-page", coverage.coverage_page),
    ("horizons", horizons.horizons),
    ("horizons-page", horizons.horizons_page),
    ("fuzz", fuzz.fuzz),
    ("glitches", glitches.glitches),
    ("glitches-page", glitches.glitches_page),
    ("kills", kills.kills),
    ("store", kills.store),
):
    app.command(bench)(command)
