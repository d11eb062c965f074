"""The heart rate of patients never seen before, a second ahead: python examples/gallery/heart_rate.py."""

import argparse
from itertools import pairwise

import numpy as np

from varnn import Panel, datasets, evaluation
from varnn.monitoring import Monitor
from varnn.report import comparison_page

MODELS = ["persistence", "arx-lr", "narx-gbm", "varnn"]


def load(patients: int) -> Panel:
    """Load the first patients of BIDMC, eight minutes each, once a second: heart rate, breath and oxygen."""
    panel = datasets.load("bidmc", inputs="numerics").with_inputs(
        ["RESP", "SpO2"]
    )  # PULSE is the answer again
    return panel.between(0, int(panel.starts[min(patients, panel.n_series)]))


def cut_by_patient(panel: Panel) -> evaluation.Parts:
    """Learn from 64 % of the patients, choose on 16 %, score the others: nobody is in two parts."""
    first, second = (round(share * panel.n_series) for share in (0.64, 0.8))
    ends = [0, *(int(panel.starts[number]) for number in (first, second)), len(panel)]
    train, validation, test = (panel.between(a, b) for a, b in pairwise(ends))
    return evaluation.Parts(train, validation, test, lead_in=test, protocol="honest")


def compare(panel: Panel) -> evaluation.Comparison:
    """Score the models on patients that none of them has seen."""
    return evaluation.compare(
        panel,
        MODELS,
        seeds=3,
        parts=cut_by_patient(panel),
        metrics=["rmse", "mae", "skill", "coverage", "width"],
    )


def alarms(comparison: evaluation.Comparison) -> list[str]:
    """Follow every new patient live, and say when the heart stopped behaving as predicted."""
    test, model, said = comparison.parts.test, comparison.fitted["varnn"], []
    for name, start, end in zip(test.ids, test.starts, test.starts[1:], strict=False):
        live, monitor = model.stream(), Monitor()
        for second, row in enumerate(range(start, end)):
            live.predict(test.inputs[row])
            label = float(test.target[row])
            for event in monitor.observe(live.observe(None if np.isnan(label) else label)):
                said.append(f"patient {name}, second {second}: {event.kind}, size {event.size:.2g}")
    return said


def main() -> None:
    """Compare on new patients, then watch them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", type=int, default=53)
    comparison = compare(load(parser.parse_args().patients))
    print(comparison_page.in_words(comparison))
    print("\n".join(alarms(comparison)))


if __name__ == "__main__":
    main()
