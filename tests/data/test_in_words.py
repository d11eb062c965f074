"""Numbers as people read them: few digits, no exponent, and never a figure that nobody can read."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from varnn.data.in_words import beside, change, figure, percent, times

WRITERS = {
    "percent": percent,
    "times": lambda value: times(abs(value)),
    "change": change,
    "beside": beside,
    "figure": figure,
    "signed": lambda value: figure(value, 3, signed=True),
}
ANY = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@given(value=ANY)
def test_few_digits_and_no_exponent(write, value: float) -> None:  # type: ignore[no-untyped-def]  # several forms
    text = write(value)
    assert text and len(re.findall(r"\d", text)) <= 9, text
    assert not re.search(r"\d[eE][+-]?\d|inf|nan", text), text


@given(value=st.floats(min_value=1e-4, max_value=9.9e6))
def test_a_figure_is_the_number_to_its_digits(value: float) -> None:
    assert float(figure(value).replace(",", "")) == pytest.approx(value, rel=5e-4)
    assert float(figure(-value).replace(",", "")) == pytest.approx(-value, rel=5e-4)


@given(value=st.floats(min_value=1e-12, max_value=9e14))
def test_a_figure_in_words_is_the_number_too(value: float) -> None:
    number, _, word = figure(value).partition(" ")
    unit = {"": 1, "million": 1e6, "billion": 1e9, "trillion": 1e12}
    unit |= {"millionths": 1e-6, "billionths": 1e-9, "trillionths": 1e-12}
    assert float(number.replace(",", "")) * unit[word] == pytest.approx(value, rel=5e-4)


@given(value=st.floats(min_value=-0.9999, max_value=9.99))
def test_a_change_within_reason_is_a_percentage(value: float) -> None:
    assert change(value) == f"{value:+.1%}"
    assert percent(value) == f"{value:.1%}"
    assert beside(value) == f"{abs(value):.1%} {'below' if value < 0 else 'above'}"


def test_what_nobody_can_read_becomes_words() -> None:
    wild = 8282520551907379778682.88
    assert f"{wild:.0%}" == "828252055190737977868288%"  # as a page had it
    assert (percent(-wild), change(wild), beside(wild), times(wild)) == (
        "under -1,000%",
        "over 1,000 times",
        "over 1,000 times",
        "over 1,000 times",
    )
    assert times(math.inf) == "over 1,000 times" and change(math.nan) == "-"


def test_a_figure_of_five_digits_has_no_exponent() -> None:
    assert f"{12345.0:.4g}" == "1.234e+04"  # as tables had it
    assert figure(12345.0) == "12,345"
    assert figure(99999.96) == "100,000"
