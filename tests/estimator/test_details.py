"""Settings that are seldom changed: one record, reached by name."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from varnn import Details, VARNNRegressor
from varnn.errors import ConfigError

X = np.random.default_rng(0).normal(size=(60, 1))
SMALL: dict[str, Any] = {"epochs": 1, "hidden_size": 4, "ensemble": 1}


def test_the_published_details_are_changed_by_name_alone() -> None:
    model = VARNNRegressor.paper("RM", loss_rows=2)
    assert model.settings().schedule == "constant" and model.settings().loss_rows == 2
    assert VARNNRegressor.paper("RM", details=None).get_params() == VARNNRegressor.paper("RM").get_params()
    for given in (Details(loss_rows=2), {"loss_rows": 2}, "none"):
        with pytest.raises(ConfigError, match=r"paper\('RM', loss_rows=2\)"):
            VARNNRegressor.paper("RM", details=given)


def test_details_are_parameters_whether_given_or_not() -> None:
    for model in (VARNNRegressor(), VARNNRegressor(details=Details())):
        assert model.get_params()["details__patience"] == 5
        assert clone(model).set_params(details__patience=3).settings().patience == 3


@pytest.mark.parametrize("name", ["details__nope", "patience"])
def test_an_unknown_name_is_refused_and_nothing_is_set(name: str) -> None:
    model = VARNNRegressor()
    with pytest.raises(ValueError, match=r"details__patience"):
        model.set_params(epochs=5, **{name: 3})
    assert model.epochs is None


@pytest.mark.parametrize("wrong", [{"patience": 3}, "few", 3])
def test_details_of_the_wrong_kind_are_refused_in_words(wrong: Any) -> None:
    model = VARNNRegressor(details=wrong)
    for use in (
        lambda: model.fit(X, X[:, 0]),
        lambda: model.settings(),
        lambda: model.set_params(details__patience=2),
    ):
        with pytest.raises(ConfigError, match=r"details must be Details\(\.\.\.\)"):
            use()


def test_a_detail_is_no_setting_of_the_estimator() -> None:
    settings: dict[str, Any] = {"patience": 3}
    with pytest.raises(TypeError, match="unexpected keyword argument 'patience'"):
        VARNNRegressor(**settings)
    with pytest.raises(ConfigError, match="adapt must be 'constant-gain' or None; got 'rls'"):
        VARNNRegressor(adapt="rls").fit(X, X[:, 0])  # type: ignore[arg-type]  # wrong on purpose


def test_messages_name_the_details_they_are_about(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match=r"^details\.patience must be"):
        VARNNRegressor(details=Details(patience=-1)).fit(X, X[:, 0])
    with pytest.raises(ConfigError, match=r"Details\(engine='auto'\)"):
        VARNNRegressor(**SMALL, details=Details(engine="compiled")).fit(X, X[:, 0])
    VARNNRegressor(**SMALL, details=Details(max_rows=40)).fit(X, X[:, 0])
    assert "Details(max_rows=...) takes more" in caplog.text


def test_any_value_can_be_shown() -> None:
    odd: dict[str, Any] = {"memory_size": np.arange(3)}
    assert "memory_size=array" in repr(VARNNRegressor(details=Details(**odd)))


def test_parameters_given_back_change_nothing() -> None:
    """Also where there are no details: those by name beside None are the default ones."""
    for model in (VARNNRegressor(), VARNNRegressor(details=Details(patience=3))):
        before = model.get_params()
        assert model.set_params(**before).get_params() == before
    assert VARNNRegressor().set_params(details=None, details__patience=3).details == Details(patience=3)
