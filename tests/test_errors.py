"""The hint for a package that is not there: a line that works, however this library was installed."""

import pickle
import sys
from importlib import metadata
from pathlib import Path

import pytest

from varnn import errors
from varnn.errors import MissingExtraError, Need, ask_all, require, require_all

INSTALL = "pip install"


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(errors, "_installer", lambda: INSTALL)


def hint() -> str:
    with pytest.raises(MissingExtraError, match="drawing needs the package 'matplotlib', which is not") as no:
        require("matplotlib", extra="plots", purpose="drawing")
    return str(no.value).partition("Install it with: ")[2]


@pytest.mark.usefixtures("missing")
def test_a_clone_is_installed_again_with_the_extra_from_wherever_one_is() -> None:
    root = Path(__file__).parents[1]
    assert hint() == f"pip install -e '{root}[plots]'"


@pytest.mark.usefixtures("missing")
def test_a_wheel_has_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "site-packages" / "varnn" / "errors.py"))
    monkeypatch.setattr(metadata, "distribution", lambda _: None)
    assert hint() == "pip install 'varnn[plots]'"


@pytest.mark.usefixtures("missing")
def test_a_copy_that_nobody_installed_names_the_package_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "lib" / "varnn" / "errors.py"))

    def unknown(_: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "distribution", unknown)
    assert hint() == "pip install matplotlib"
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match="pip install scikit-learn"):
        require("sklearn", extra="baselines", purpose="least squares")


@pytest.mark.usefixtures("missing")
def test_all_that_is_missing_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    needs = [
        Need("matplotlib", "plots", "a page"),
        Need("json", "files", "rows"),
        Need("optuna", "tune", "tuning"),
    ]
    with pytest.raises(MissingExtraError) as error:
        require_all(needs)
    said, _, line = str(error.value).partition(". Install them with: ")
    assert said == "a page needs the package 'matplotlib', tuning 'optuna', which are not installed"
    assert line.endswith("[plots,tune]'")


@pytest.mark.usefixtures("missing")
def test_what_several_ask_for_is_one_message_with_each_package_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("starlette", "uvicorn", "paho", "paho.mqtt", "paho.mqtt.client"):
        monkeypatch.setitem(sys.modules, module, None)
    service = [Need("starlette", "serve", "a service"), Need("uvicorn", "serve", "a service")]
    checks = [
        lambda: require_all(service),
        lambda: require("paho.mqtt.client", extra="mqtt", purpose="MQTT"),
        lambda: require("uvicorn", extra="serve", purpose="something else"),
        lambda: require("json", extra="files", purpose="JSON"),
    ]
    with pytest.raises(MissingExtraError) as error:
        ask_all(checks)
    said, _, line = str(error.value).partition(", which are not installed. Install them with: ")
    assert said == "a service needs the packages 'starlette' and 'uvicorn', MQTT 'paho-mqtt'"
    assert line.endswith("[serve,mqtt]'")
    again = pickle.loads(pickle.dumps(error.value))  # as from a worker
    assert str(again) == str(error.value) and again.needs == error.value.needs


def test_an_error_without_a_list_of_packages_is_raised_as_it_is() -> None:
    def check() -> None:
        raise MissingExtraError("Keras has no backend.")

    with pytest.raises(MissingExtraError, match="Keras has no backend"):
        ask_all([check])


def test_the_line_is_for_this_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip beside it may be called so; another one must not be, and environments of uv have none."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    (python.parent / "pip").write_text("")
    (python.parent / "pip").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", str(python.parent))
    assert errors._installer() == "pip install"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert errors._installer() == f"{python} -m pip install"
    monkeypatch.setitem(sys.modules, "pip", None)
    assert errors._installer() == f"uv pip install --python {python}"


def test_a_package_that_is_there_but_broken_keeps_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text("import something_that_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_that_it_needs") as error:
        require("half_installed", extra="plots", purpose="drawing")
    assert not isinstance(error.value, MissingExtraError)
