"""The check of kept figures: which jobs, how they are judged, and that a changed figure is caught."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Reproduce
from varnn.errors import ConfigError, DataError
from varnn.evaluation import DETERMINISTIC
from varnn.network.cell import VARIANTS
from varnn.paper import check
from varnn.paper.digits import decimals, printed
from varnn.paper.jobs import FORESTS, RECURRENT, STATIC, Job, Outcome, job
from varnn.paper.jobs import run as run_job
from varnn.paper.plan import LAGGED, Scope, _weight
from varnn.paper.records import Record, outcomes_csv, read_outcomes
from varnn.report.provenance import provenance

HERE = provenance()
THERE = {**HERE, "machine": "a tractor, 3 cores"}
RM, ARX = job("appliances", "paper", "RM"), job("appliances", "paper", "arx-lr", lags="as-published")


def record(test: float, made: dict[str, str] = HERE, train: float = 0.005) -> Record:
    return Record(train, test, 1.0, None, None, made)


def outcome(test: float, made: dict[str, str] = HERE, train: float = 0.005) -> Outcome:
    return Outcome(train, test, 1.0, made=made)


def word(
    one: Job, kept: float, now: float, *, made: dict[str, str] = THERE, seeds: tuple[float, ...] = ()
) -> str:
    """Judge one figure, beside kept figures of other seeds."""
    records = {one: record(kept, made)}
    records |= {
        replace(one, seed=one.seed + at): record(test, made) for at, test in enumerate(seeds, start=1)
    }
    return check.compare(one, records, outcome(now)).word


def test_the_list_is_thirty_jobs_of_the_plan_and_of_every_kind() -> None:
    jobs = check.chosen()
    plan = Scope().jobs()
    assert len(jobs) == len(set(jobs)) == 30
    assert set(jobs) <= set(plan)
    assert [_weight(one) for one in jobs] == sorted(map(_weight, jobs), reverse=True)
    assert sum(map(_weight, jobs)) < 1200  # seconds of one core: ten minutes on two
    assert {one.model for one in jobs} == {*STATIC, *LAGGED, *RECURRENT, *VARIANTS, "persistence", "narx-gbm"}
    assert {one.protocol for one in jobs if one.dataset == "appliances"} == {"paper", "honest"}
    for dataset in ("bidmc", "beijing"):
        assert {"RM", "arx-lr"} <= {one.model for one in jobs if one.dataset == dataset}
    said = {pair for one in jobs for pair in one.settings}
    assert {("lags", "as-published"), ("lags", "correct"), ("fair", True), ("current", True)} <= said
    assert {("residual", "none"), ("residual", "scalar"), ("memory_activation", "tanh")} <= said
    assert {value for name, value in said if name == "memory_size"} == {4, 64}
    assert {one.model for one in jobs} >= set(FORESTS)
    assert any(one.split != 2025 for one in jobs)
    assert check.datasets_of(jobs) == ["appliances", "beijing", "bidmc"]


def test_of_what_draws_several_seeds_are_in_the_plan() -> None:
    plan = Scope().jobs()
    for one in check.chosen():
        if one.model not in DETERMINISTIC:
            assert sum(replace(other, seed=one.seed) == one for other in plan) >= 3, str(one)


def test_printed_digits_are_those_of_the_tables() -> None:
    assert [decimals(one) for one in (0.1, 0.001, 0.0009999)] == [5, 5, 6]
    assert printed(0.0009999) == "0.001000"


@pytest.mark.parametrize("one", [RM, ARX], ids=["RM", "ARX"])
def test_on_the_same_machine_figures_are_equal_as_printed(one: Job) -> None:
    seeds = (0.004, 0.002)  # however wide they lie
    assert word(one, 0.0032812, 0.0032849, made=HERE, seeds=seeds) == "equal"
    assert word(one, 0.0032812, 0.0032851, made=HERE, seeds=seeds) == "differs"
    assert word(one, 0.00014871, 0.00014949, made=HERE, seeds=seeds) == "equal"
    assert word(one, 0.00014871, 0.00014951, made=HERE, seeds=seeds) == "differs"


def test_figures_on_both_sides_of_a_rule_of_digits_are_printed_with_the_same() -> None:
    """Below 0.001 figures have a digit more: 0.001000 and 0.00100 are no difference."""
    for kept, now in ((0.0009999, 0.0010001), (0.0010001, 0.0009999)):
        assert word(RM, kept, now, made=HERE) == "equal"
    assert check.Comparison("test", 0.0009999, 0.0010001, 0.0).texts == ("0.001000", "0.001000")
    assert word(RM, 0.0009999, 0.0010011, made=HERE) == "differs"


def test_on_the_same_machine_a_last_bit_across_an_edge_of_rounding_is_close() -> None:
    below, above = 0.0032849999999999, 0.0032850000000001
    assert printed(below) != printed(above)
    assert word(RM, below, above, made=HERE) == word(RM, above, below, made=HERE) == "close"
    assert word(RM, 0.003284999, 0.003285001, made=HERE) == "close"
    assert word(RM, 0.00328499, 0.00328501, made=HERE) == "differs"


@pytest.mark.parametrize("name", ["machine", "python", "torch", "numpy", "scikit-learn", "numba", "lightgbm"])
def test_another_library_is_another_machine(name: str) -> None:
    line = check.compare(RM, {RM: record(0.003, {**HERE, name: "other"})}, outcome(0.003))
    assert not line.same_machine
    unknown = {one: value for one, value in HERE.items() if one != name}
    line = check.compare(RM, {RM: record(0.003, unknown)}, outcome(0.003, unknown))
    assert line.same_machine == (name == "lightgbm")  # older records do not name it
    assert check.compare(RM, {RM: record(0.003, {**HERE, "date": "long ago"})}, outcome(0.003)).same_machine


def test_elsewhere_the_spread_over_the_kept_seeds_is_allowed() -> None:
    seeds = (0.00330, 0.00340)  # with 0.00320: a standard deviation of 0.0001
    assert word(RM, 0.0032, 0.003499, seeds=seeds) == "close"
    assert word(RM, 0.0032, 0.002901, seeds=seeds) == "close"
    assert word(RM, 0.0032, 0.003501, seeds=seeds) == "differs"
    assert word(RM, 0.0032, 0.002899, seeds=seeds) == "differs"


def test_elsewhere_a_printed_digit_is_allowed_at_least() -> None:
    same = (0.0032, 0.0032)
    assert word(RM, 0.0032, 0.00321, seeds=same) == "close"
    assert word(RM, 0.0032, 0.003211, seeds=same) == "differs"
    assert word(RM, 0.00015, 0.000151, seeds=(0.00015, 0.00015)) == "close"
    assert word(RM, 0.00015, 0.0001521, seeds=(0.00015, 0.00015)) == "differs"


def test_elsewhere_what_draws_nothing_has_a_ten_thousandth() -> None:
    assert word(ARX, 0.5, 0.50004) == "close"
    assert word(ARX, 0.5, 0.50006) == "differs"
    assert word(ARX, 0.0050, 0.00501) == "close"  # a printed digit is more
    assert word(ARX, 0.0050, 0.00502) == "differs"


def test_boosting_may_be_of_another_library() -> None:
    """LightGBM and scikit-learn's are 1.4 % apart in the test error of this job."""
    boosting = job("appliances", "honest", "narx-gbm")
    assert boosting in check.chosen()
    assert word(boosting, 0.0034647, 0.0034154) == "close"
    assert word(boosting, 0.0034647, 0.0035700) == "differs"
    assert word(boosting, 0.0034647, 0.0034154, made={**HERE, "lightgbm": "not installed"}) == "close"
    assert word(boosting, 0.0034647, 0.0034154, made=HERE) == "differs"
    unknown = {name: value for name, value in HERE.items() if name != "lightgbm"}
    assert word(boosting, 0.0034647, 0.0034154, made=unknown) == "close"
    assert word(RM, 0.0034647, 0.0034154, made=unknown) == "differs"


def test_seeds_of_other_configurations_do_not_count() -> None:
    others = [
        job("appliances", "honest", "RM", 2026),
        job("appliances", "paper", "ARM", 2026),
        job("beijing", "paper", "RM", 2026),
        job("appliances", "paper", "RM", 2026, memory_size=4),
        job("appliances", "paper", "RM", 2026, split=1),
    ]
    records = {RM: record(0.0032, THERE)} | {one: record(9.0, THERE) for one in others}
    assert check.compare(RM, records, outcome(0.0040)).word == "not judged"
    assert check.compare(RM, records, outcome(0.00321)).word == "close"
    records[replace(RM, seed=2026)] = record(0.0033, THERE)
    assert check.compare(RM, records, outcome(0.0040)).word == "differs"


def test_seeds_that_lie_close_by_chance_borrow_the_spread_of_their_family() -> None:
    close = {RM: record(0.0032, THERE), replace(RM, seed=2026): record(0.0032, THERE)}
    assert check.compare(RM, close, outcome(0.0034)).word == "differs"
    far = job("appliances", "paper", "ARM", learning_rate=1e-3)
    wide = {far: record(0.004, THERE), replace(far, seed=2026): record(0.0044, THERE)}  # 6.7 % of their mean
    # Root mean square over both configurations: 4.8 %; three times that of 0.0032 is 0.00046.
    assert check.compare(RM, close | wide, outcome(0.00365)).word == "close"
    assert check.compare(RM, close | wide, outcome(0.00367)).word == "differs"
    assert check.compare(RM, {RM: close[RM]} | wide, outcome(0.0038)).word == "close"  # 6.7 % alone: 0.00065
    for other in (replace(far, model="rnn"), replace(far, dataset="bidmc"), replace(far, protocol="honest")):
        strange = {other: record(0.004, THERE), replace(other, seed=2026): record(0.0044, THERE)}
        assert check.compare(RM, close | strange, outcome(0.0034)).word == "differs"


def test_the_training_error_counts_as_well() -> None:
    line = check.compare(ARX, {ARX: record(0.003)}, outcome(0.003, train=0.0051))
    assert [one.word for one in line.comparisons] == ["differs", "equal"]
    assert line.word == "differs"


def test_a_check_runs_what_is_kept_and_says_what_came_out() -> None:
    kept = {one: record(0.003) for one in check.chosen()[5:]}
    ran: list[Job] = []

    def run(jobs: list[Job]) -> dict[Job, Outcome]:
        ran.extend(jobs)
        return {one: outcome(0.004 if one == ARX else 0.003) for one in jobs}

    found = check.check(kept, run)  # type: ignore[arg-type]  # records stand in for outcomes
    assert ran == check.chosen()[5:]
    assert [line.job for line in found.failed] == [ARX]
    assert found.summary == (
        "Of 25 jobs run anew: 24 equal, 1 differs; kept figures are of the same machine and libraries; "
        "5 more are not in the file."
    )
    content = json.loads(json.dumps(found.as_dict()))
    assert content["failed"] == 1
    assert len(content["absent"]) == 5
    assert [one["job"] for one in content["jobs"] if one["verdict"] == "differs"] == [str(ARX)]
    assert content["jobs"][-1]["test"]["kept"] == 0.003


def test_a_file_without_any_job_of_the_check_is_refused() -> None:
    with pytest.raises(DataError, match="at least one of the 30 jobs of the check; it holds 1 others"):
        check.check({job("appliances", "paper", "RM", 7): record(0.003)}, run=dict)  # type: ignore[arg-type]  # nothing runs


def test_the_figures_in_the_docs_hold_every_job_of_the_check() -> None:
    place = Path(__file__).parents[2] / check.KEPT
    assert set(check.chosen()) <= set(read_outcomes(place))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--check", "--quick"], "got --quick."),
        (["--check", "--finished", "--seeds", "3"], "got --seeds, --finished."),
        (["table2", "--check"], "got table2."),
        (["--check", "--dataset", "bidmc", "--models", "RM"], "got --dataset, --models."),
        (["--check", "--trees", "20", "--note", "x", "-o", "y"], "got --trees, --note, --output."),
        (["--against", "outcomes.csv"], "--against belongs to --check"),
    ],
)
def test_options_that_mean_nothing_are_refused(arguments: list[str], said: str, reproduce: Reproduce) -> None:
    code, out, error = reproduce(*arguments)
    assert (code, out) == (2, "")
    assert said in error
    assert error.count("\n") == 1


def test_without_kept_figures_it_says_what_to_do(
    reproduce: Reproduce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, error = reproduce("--check")
    assert (code, out) == (2, "")
    assert "docs/reproduction/outcomes.csv' is not there. Run it in a checkout, or name the file." in error
    with pytest.raises(ConfigError, match="is not there"):
        check.kept_figures(tmp_path / "absent.csv")


def test_a_changed_figure_is_caught(reproduce: Reproduce, tmp_path: Path, data_folder: Path) -> None:
    """Two jobs for real, through the command: first against themselves, then against a changed figure."""
    place = tmp_path / "outcomes.csv"
    two = [ARX, job("appliances", "honest", "arx-lr", lags="correct")]
    outcomes = {one: run_job(one) for one in two}
    place.write_text(outcomes_csv(outcomes))
    code, out, error = reproduce("--check", "--against", place, "--workers", "1")
    assert code == 0, error
    assert "Of 2 jobs run anew: 2 equal; kept figures are of the same machine and libraries; 28 more" in out
    assert printed(outcomes[ARX].train) in out
    assert not (tmp_path / "results").exists()

    changed = replace(outcomes[ARX], test=outcomes[ARX].test + 0.00002)
    place.write_text(outcomes_csv({**outcomes, ARX: changed}))
    code, out, error = reproduce("--check", "--against", place, "--workers", "1", "--json")
    assert code == 1, error
    content = json.loads(out)
    assert content["against"] == str(place)
    assert {one["job"]: one["verdict"] for one in content["jobs"]} == {
        str(ARX): "differs",
        str(two[1]): "equal",
    }
    now = {one["job"]: one["test"]["now"] for one in content["jobs"]}
    assert printed(now[str(ARX)]) == printed(outcomes[ARX].test)
