"""Where a model fails: against pandas' group by, and stretches against looking at all of them."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varnn import Panel
from varnn.errors import DataError
from varnn.monitoring import failures
from varnn.monitoring.failures import worst_stretches


def rows() -> tuple[Panel, pd.DataFrame]:
    """Give two series of three weeks with gaps, and the same as a frame with errors of both models."""
    generator = np.random.default_rng(0)
    time = np.datetime64("2026-01-01T00:30") + np.arange(24 * 21) * np.timedelta64(1, "h")
    frame = pd.DataFrame(
        {
            "series": np.repeat(["b", "a"], len(time)),
            "time": np.tile(time, 2),
            "y": generator.gamma(2.0, size=2 * len(time)),
            "covered": generator.random(2 * len(time)) < 0.9,
        }
    )
    frame.loc[generator.choice(len(frame), 80, replace=False), "y"] = np.nan
    frame["prediction"] = frame["y"].fillna(1.0) + generator.normal(size=len(frame)) * (
        1 + (frame["time"].dt.hour == 7) * 3
    )
    panel = Panel.from_frame(frame, target="y", time="time", series="series", inputs=[])
    frame["last"] = frame.groupby("series", sort=False)["y"].transform(lambda one: one.ffill().shift())
    frame["error"], frame["naive"] = frame["y"] - frame["prediction"], frame["y"] - frame["last"]
    frame.loc[frame["error"].isna() | frame["naive"].isna(), ["error", "naive"]] = np.nan
    return panel, frame


def test_groups_are_those_of_pandas() -> None:
    panel, frame = rows()
    found = failures(panel, frame["prediction"].to_numpy(), covered=frame["covered"].to_numpy())
    known = frame.dropna(subset=["error"])
    by = {
        "hours": known["time"].dt.strftime("%H:00"),
        "weekdays": known["time"].dt.day_name(),
        "levels": pd.qcut(known["y"], 5).astype(str),
        "series": known["series"],
    }
    for kind, groups in by.items():
        want = known.groupby(groups).agg(
            rows=("error", "size"),
            rmse=("error", lambda one: np.sqrt((one**2).mean())),
            persistence=("naive", lambda one: np.sqrt((one**2).mean())),
            bias=("error", "mean"),
            coverage=("covered", "mean"),
        )
        got = getattr(found, kind)
        assert len(got) == len(want)
        if kind == "levels":  # named otherwise: in their order
            want = want.loc[sorted(want.index, key=lambda one: float(one.strip("(").split(",")[0]))]
        else:
            want = want.loc[[one.name for one in got]]
        np.testing.assert_allclose([one[1:] for one in got], want.to_numpy(float))
    assert found.weekdays[0].name == "Monday"
    assert max(found.hours, key=lambda one: one.rmse).name == "07:00"
    assert found.series[0].rmse > found.series[1].rmse
    assert found.overall.rows == len(known)
    json.dumps(found.as_dict())


def test_stretches_say_where_and_how_much() -> None:
    panel, frame = rows()
    prediction = frame["prediction"].to_numpy().copy()
    prediction[700:724] += 30
    found = failures(panel, prediction)
    worst = found.stretches[0]
    assert worst.series == "a" and worst.first <= 702 and worst.last >= 721 and worst.last - worst.first == 23
    assert worst.share > 0.9 and worst.rmse > 25 > worst.persistence
    spans = sorted((one.first, one.last) for one in found.stretches)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    assert found.stretches == tuple(sorted(found.stretches, key=lambda one: -one.share))


@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    length=st.integers(1, 6),
    most=st.integers(1, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_the_worst_stretches_are_found(lengths: list[int], length: int, most: int, seed: int) -> None:
    errors = np.random.default_rng(seed).integers(0, 4, size=sum(lengths)).astype(float)
    starts = np.cumsum([0, *lengths])
    found = worst_stretches(errors, starts, length, most)
    length = min(length, max(lengths))
    places = [one for begin, end in pairwise(starts) for one in range(int(begin), int(end) - length + 1)]
    taken: list[int] = []
    for one in found:
        free = [place for place in places if all(abs(place - other) >= length for other in taken)]
        sums = {place: float((errors[place : place + length] ** 2).sum()) for place in free}
        assert one.start in sums and sums[one.start] == max(sums.values()) and one.stop == one.start + length
        taken.append(one.start)


def test_rows_without_a_calendar_and_labels_alike_have_fewer_groups() -> None:
    panel = Panel.from_arrays(None, np.r_[np.zeros(90), np.ones(10)])
    found = failures(panel, np.zeros(100))
    assert found.hours == () == found.weekdays == found.series and found.levels == ()
    assert found.overall.coverage is None and found.overall.rmse == pytest.approx(np.sqrt(10 / 99))
    wild = failures(panel, np.full(100, 1e200))
    assert wild.overall.rmse > 1e100
    with pytest.raises(DataError, match="one prediction per row"):
        failures(panel, np.zeros(99))
    with pytest.raises(DataError, match="a label and one before it"):
        failures(panel.between(0, 1), np.zeros(1))
