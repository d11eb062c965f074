"""``varnn predict`` of a folder: a file of predictions for each file in it, several at a time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from varnn.errors import ConfigError, DataError

if TYPE_CHECKING:
    from varnn.data.tables import Reading

_SHOWN = 10  # files that failed, in lines


def predict_folder(
    model: Path,
    folder: Path,
    output: Path,
    reading: "Reading",
    levels: Sequence[float],
    *,
    after_training: bool | None,
    workers: int | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Predict every file of a folder; those that cannot be are named at the end, with exit code 2."""
    from varnn.cli.progress import counting_bar
    from varnn.cli.terminal import console, printable
    from varnn.data.files import STANDARD
    from varnn.scale.parquet import parquet_files
    from varnn.scale.scoring import ScoredFile, score_files

    if output == STANDARD:
        raise ConfigError("predictions of a folder go to a folder. Name one with --output.")
    words = console(stderr=True, quiet=as_json)
    with counting_bar() as progress:
        task = progress.add_task("predicting", total=len(parquet_files(folder)))

        def on_file(one: ScoredFile) -> None:
            progress.update(task, advance=1, description=printable(one.name))

        scored = score_files(
            model,
            folder,
            output,
            target=reading.target or None,
            time=reading.time,
            series=reading.series,
            interval=levels or None,
            after_training=after_training,
            workers=workers,
            cluster=cluster,
            on_file=on_file,
            time_format=reading.time_format,
            time_zone=reading.time_zone,
            missing=reading.missing,
            sort=reading.sort,
            duplicates=reading.duplicates,
        )
    kept, lacking = sum(one.is_kept for one in scored.files), sum(one.without_model for one in scored.files)
    done = len(scored.files) - len(scored.failures)
    words.print(
        f"Predicted {scored.rows:,} rows of {sum(one.series for one in scored.files):,} series in {done:,} "
        f"files{f', {kept:,} of them before' if kept else ''}. Wrote {output}.",
        markup=False,
    )
    if lacking:
        words.print(f"{lacking:,} series have no model, and no predictions.", markup=False)
    if as_json:
        typer.echo(
            json.dumps({"output": str(output), "files": [_facts(one) for one in scored.files]}, indent=1)
        )
    if scored.failures:
        for name, why in list(scored.failures.items())[:_SHOWN]:
            words.print(f"{name}: {why}", markup=False)
        raise DataError(
            f"{len(scored.failures):,} of {len(scored.files):,} files could not be predicted, "
            f"{next(iter(scored.failures))!r} for one. Mend them, and run this again: the others are kept."
        )


def _facts(one: Any) -> dict[str, Any]:
    return {
        "name": one.name,
        "rows": one.rows,
        "series": one.series,
        "without_model": one.without_model,
        "before": one.is_kept,
        "failure": one.failure,
    }
