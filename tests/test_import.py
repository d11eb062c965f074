"""Importing is light, and what is public is what is said to be."""

import subprocess
import sys

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


def test_a_stream_needs_neither_torch_nor_scikit_learn() -> None:
    loaded = run(
        "import sys; from varnn import Stream, Panel; print({'torch', 'sklearn'} & set(sys.modules))"
    )
    assert loaded.strip() == "set()"


def test_a_stream_and_its_service_start_without_scipys_statistics() -> None:
    code = "import sys, varnn.service.service, varnn.cli.stream; print('scipy.stats' in sys.modules)"
    assert run(code).strip() == "False"


def test_public_names_are_there() -> None:
    for name in varnn.__all__:
        assert getattr(varnn, name) is not None
        assert name in dir(varnn)
    assert not hasattr(varnn, "nothing_of_this_name")


def test_loading_a_model_does_not_import_all_that_scales() -> None:
    heavy = ("torch", "varnn.service", "varnn.evaluation", "varnn.scale.keyed", "varnn.scale.tuning")
    loaded = run(f"import sys, varnn; varnn.load; print([one for one in {heavy} if one in sys.modules])")
    assert loaded.strip() == "[]"


def test_names_of_scale_are_there() -> None:
    from varnn import scale

    for name in scale.__all__:
        assert getattr(scale, name) is not None
    assert set(scale._HOME) == set(scale.__all__) and not hasattr(scale, "nothing_of_this_name")
