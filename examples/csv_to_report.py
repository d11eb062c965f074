"""A CSV in, a report and a model file out: python examples/csv_to_report.py [--rows 4000]."""

import argparse
import csv
from pathlib import Path

from varnn import Panel, VARNNRegressor, datasets, evaluation
from varnn.report import comparison_page

CSV, REPORT, MODEL = Path("stream.csv"), Path("report.html"), Path("stream.varnn")


def write_table(rows: int) -> None:
    """Write a made stream as the CSV that you would bring."""
    made = datasets.load("synthetic", kind="mixed", rows=rows, seed=7)
    with CSV.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*made.input_names, made.target_name])
        table.writerows([*x, y] for x, y in zip(made.inputs, made.target, strict=True))


def main() -> None:
    """Compare first; keep a model of all rows afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    write_table(parser.parse_args().rows)

    panel = Panel.read(CSV, target="load")
    result = evaluation.compare(panel, ["persistence", "arx-lr", "varnn"], seeds=1)
    print(comparison_page.in_words(result))
    comparison_page.page(result, CSV.name).write(REPORT)

    VARNNRegressor().fit(panel).save(MODEL)
    print(f"Wrote {CSV}, {REPORT} and {MODEL}.")


if __name__ == "__main__":
    main()
