"""Importing is light, and what is public is what is said to be."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import varnn


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_is_light() -> None:
    heavy = ("torch", "keras", "pandas", "matplotlib", "sklearn", "pyarrow", "polars", "typer")
    loaded = run(f"import sys, varnn; print([one for one in {heavy} if one in sys.modules])")
    assert loaded.strip() == "[]"


def test_the_command_shows_its_help_without_the_heavy_parts() -> None:
    code = (
        "import sys; from varnn.cli.app import app\n"
        "from typer.testing import CliRunner\n"
        "print(CliRunner().invoke(app, ['--help']).exit_code)\n"
        "heavy = ('torch', 'pandas', 'matplotlib', 'sklearn', 'pyarrow')\n"
        "print([one for one in heavy if one in sys.modules])"
    )
    assert run(code).split("\n")[:2] == ["0", "[]"]


OPTIONAL = ("sklearn", "scipy", "pandas", "torch", "joblib", "matplotlib", "numba", "pyarrow", "polars")


def test_the_estimator_is_imported_without_scikit_learn() -> None:
    code = "import sys; from varnn import Panel, Stream, VARNNRegressor, load"
    assert run(f"{code}; print({{*{OPTIONAL}}} & set(sys.modules))").strip() == "set()"


def test_what_is_compared_and_with_what_is_imported_when_it_is_used() -> None:
    code = "import sys; from varnn import baselines, datasets, evaluation, monitoring"
    assert run(f"{code}; print({{*{OPTIONAL}}} & set(sys.modules))").strip() == "set()"


def test_a_model_is_loaded_predicts_and_streams_where_none_of_these_is_installed(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = X[:, 0].cumsum()
    model = varnn.VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, horizon=2).fit(X, y)
    model.save(tmp_path / "house.varnn")
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    absent = (*OPTIONAL, "orjson", "threadpoolctl", "cloudpickle", "typer", "rich")
    rows = (
        f"import sys; sys.modules |= dict.fromkeys({absent})\n"
        f"import numpy, varnn; rows = numpy.load({str(tmp_path / 'rows.npy')!r})\n"
        "X, y = rows[:, :2], rows[:, 2]\n"
    )
    steps = (
        f"model = varnn.load({str(tmp_path / 'house.varnn')!r})\n"
        "batch = model.predict(X, y, interval=0.9)[0]; model.score(X, y); model.forecast(); repr(model)\n"
        "live = model.stream()\n"
        "for x, label, expected in zip(X, y, batch):\n"
        "    assert abs(live.predict(x) - expected) < 1e-4 * max(1, abs(expected)); live.observe(label)\n"
        "try: varnn.VARNNRegressor().predict(X)\n"
        "except varnn.errors.NotFittedError: pass\n"
        "try: model.fit(X, y)\n"
        "except varnn.errors.MissingExtraError as error: print(error)"
    )
    assert "training needs the packages 'torch' and 'scipy'" in run(rows + steps)


def test_a_stream_and_its_service_start_without_scipys_statistics() -> None:
    code = "import sys, varnn.service.service, varnn.cli.stream; print('scipy.stats' in sys.modules)"
    assert run(code).strip() == "False"


def test_public_names_are_there() -> None:
    for name in varnn.__all__:
        assert getattr(varnn, name) is not None
        assert name in dir(varnn)
    assert not hasattr(varnn, "nothing_of_this_name")


def test_a_list_of_names_has_what_users_want_once() -> None:
    listed = varnn.__dir__()
    assert [one for one in listed if not one.startswith("__")] == sorted(varnn.__all__)
    assert len(listed) == len(set(listed))


def test_loading_a_model_does_not_import_all_that_scales() -> None:
    heavy = ("torch", "varnn.service", "varnn.evaluation", "varnn.scale.keyed", "varnn.scale.tuning")
    loaded = run(f"import sys, varnn; varnn.load; print([one for one in {heavy} if one in sys.modules])")
    assert loaded.strip() == "[]"


def test_names_of_scale_are_there() -> None:
    from varnn import scale

    for name in scale.__all__:
        assert getattr(scale, name) is not None
    assert set(scale._HOME) == set(scale.__all__) and not hasattr(scale, "nothing_of_this_name")
