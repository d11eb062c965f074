"""``python -m benchmarks``: every bench, and the pages made from what they left."""

from collections.abc import Callable

import typer

from benchmarks.commands import (
    ablation,
    cost,
    coverage,
    fuzz,
    glitches,
    horizons,
    kills,
    online,
    other_streams,
    robustness,
    scale,
    service,
    service_fuzz,
    speed,
    tune,
)
from varnn.cli.app import run

app = typer.Typer(
    name="python -m benchmarks", help="Measure speed, accuracy and robustness.", no_args_is_help=True
)


@app.callback()
def _bench() -> None:
    """Measure speed against named peers, interleaved in one run; accuracy; and robustness."""


COMMANDS: dict[str, Callable[..., None]] = {
    "stream-default": cost.stream_default,
    "stream-command": cost.stream_command,
    "fleet": cost.fleet,
    "backtest": cost.backtest,
    "forecast": cost.forecast,
    "fit-default": cost.fit_default,
    "growth-default": cost.growth_default,
    "train": speed.train,
    "score": speed.score,
    "stream": speed.stream,
    "growth": speed.growth,
    "all": speed.everything,
    "page": speed.page,
    "ablation": ablation.ablation,
    "ablation-page": ablation.ablation_page,
    "other-streams": other_streams.other_streams,
    "other-streams-page": other_streams.other_streams_page,
    "online": online.online,
    "online-page": online.online_page,
    "tune": tune.tune,
    "coverage": coverage.coverage,
    "coverage-page": coverage.coverage_page,
    "horizons": horizons.horizons,
    "horizons-page": horizons.horizons_page,
    "robustness": robustness.robustness,
    "robustness-page": robustness.robustness_page,
    "glitches": glitches.glitches,
    "glitches-page": glitches.glitches_page,
    "fuzz": fuzz.fuzz,
    "kills": kills.kills,
    "store": kills.store,
    "scale-backtest": scale.scale_backtest,
    "scale-score": scale.scale_score,
    "scale-keyed": scale.scale_keyed,
    "service-load": service.service_load,
    "service-kills": service.service_kills,
    "service-fuzz": service_fuzz.service_fuzz,
}
for name, command in COMMANDS.items():
    app.command(name)(command)

if __name__ == "__main__":
    run(app)
