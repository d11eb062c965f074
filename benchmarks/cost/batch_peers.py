"""Whom a user would fit to a table of rows instead, and let predict each row from those before it.

All see the inputs of the row, labels before it and, but for SARIMAX, the clock. LightGBM and the networks
give no interval; that of SARIMAX is a normal distribution's.
"""

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from benchmarks.cost.lagged import WINDOW, clock, lag_table, steps
from varnn._types import DoubleArray, FloatArray
from varnn.data.panel import Panel

HELD_OUT = 0.2  # of the rows, the last, to stop by: as the default does
NORMAL_90 = 1.6448536269514722  # 95 % quantile of a normal distribution
HIDDEN, BATCH, EPOCHS, PATIENCE = 64, 128, 20, 3
ROUNDS = 500  # trees at most
STEPS = 200  # of neuralforecast, whose own default is five times that


class Peer(Protocol):
    """One that is fitted once, and then predicts every row of a panel one step ahead."""

    interval: str

    def fit(self, panel: Panel) -> None:
        """Learn."""
        ...

    def predict(self, panel: Panel) -> DoubleArray:
        """Predict (N,) labels; NaN where there are not enough rows before."""
        ...


class Boosted:
    """LightGBM on lags; the last rows say when to stop."""

    interval = "none"

    def __init__(self, threads: int) -> None:
        self.lightgbm: Any = importlib.import_module("lightgbm")
        self.threads = threads
        self.booster: Any = None

    def fit(self, panel: Panel) -> None:
        """Lay the lags out, and grow trees."""
        table, cut = lag_table(panel), _cut(panel)
        rows = self.lightgbm.Dataset(table[:cut], panel.target[:cut])
        self.booster = self.lightgbm.train(
            {"verbosity": -1, "learning_rate": 0.05, "num_threads": self.threads, "seed": 0},
            rows,
            num_boost_round=ROUNDS,
            valid_sets=[rows.create_valid(table[cut:], panel.target[cut:])],
            callbacks=[self.lightgbm.early_stopping(50, verbose=False)],
        )

    def predict(self, panel: Panel) -> DoubleArray:
        """Lay the lags out, and predict all rows in one call."""
        return np.asarray(self.booster.predict(lag_table(panel), num_threads=self.threads))


class Arimax:
    """statsmodels' SARIMAX(2, 0, 1) with the inputs as regressors; seasons of a day are too long for it."""

    interval = "90 %"

    def __init__(self, threads: int) -> None:
        self.sarimax: Any = importlib.import_module("statsmodels.tsa.statespace.sarimax").SARIMAX
        self.scale: Any = None
        self.parameters: Any = None

    def fit(self, panel: Panel) -> None:
        """Maximise the likelihood, in statsmodels' own number of iterations."""
        self.scale = _Scale(panel.inputs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of starting values, and of stopping before full convergence
            self.parameters = self._model(panel).fit(disp=0, cov_type="none").params

    def predict(self, panel: Panel) -> DoubleArray:
        """Filter all rows with the parameters found."""
        found = self._model(panel).filter(self.parameters).filter_results
        predictions = np.asarray(found.forecasts[0])
        spread = NORMAL_90 * np.sqrt(found.forecasts_error_cov[0, 0])
        _ = predictions - spread, predictions + spread
        return predictions

    def _model(self, panel: Panel) -> Any:
        return self.sarimax(panel.target, exog=self.scale(panel.inputs), order=(2, 0, 1), trend="c")


class Lstm:
    """A torch LSTM over windows as long as the default's; the last rows say when to stop."""

    interval = "none"

    def __init__(self, threads: int) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.torch.set_num_threads(threads)
        self.layers: Any = None
        self.scale: Any = None
        self.label_scale: Any = None

    def fit(self, panel: Panel) -> None:
        """Train with Adam until the rows held out have not become better for some epochs."""
        torch = self.torch
        torch.manual_seed(0)
        self.scale, self.label_scale = _Scale(steps(panel)), _Scale(panel.target)
        windows, labels = self._windows(panel), self._tensor(self.label_scale(panel.target)[WINDOW - 1 :])
        cut = _cut(panel) - WINDOW + 1
        lstm = torch.nn.LSTM(windows.shape[2], HIDDEN, batch_first=True)
        readout = torch.nn.Linear(HIDDEN, 1)
        self.layers = (lstm, readout)
        optimizer = torch.optim.Adam([*lstm.parameters(), *readout.parameters()], lr=1e-3)
        best, waited, kept = np.inf, 0, None
        for _ in range(EPOCHS):
            for batch in torch.randperm(cut).split(BATCH):
                optimizer.zero_grad()
                loss = ((self._forward(windows[batch]) - labels[batch]) ** 2).mean()
                loss.backward()
                optimizer.step()
            error = float(((self._all(windows[cut:]) - labels[cut:]) ** 2).mean())
            waited = 0 if error < best else waited + 1
            if error < best:
                best, kept = (
                    error,
                    [{k: v.clone() for k, v in one.state_dict().items()} for one in self.layers],
                )
            if waited == PATIENCE:
                break
        for layer, weights in zip(self.layers, kept or (), strict=bool(kept)):
            layer.load_state_dict(weights)

    def predict(self, panel: Panel) -> DoubleArray:
        """Go over all windows."""
        found = self.label_scale.back(self._all(self._windows(panel)).numpy())
        return np.concatenate([np.full(WINDOW - 1, np.nan), found])

    def _windows(self, panel: Panel) -> Any:
        """Windows (N - w + 1, w, D) as a view: none is copied before its batch."""
        return self._tensor(self.scale(steps(panel))).unfold(0, WINDOW, 1).transpose(1, 2)

    def _tensor(self, array: DoubleArray) -> Any:
        return self.torch.tensor(np.ascontiguousarray(array), dtype=self.torch.float32)

    def _forward(self, windows: Any) -> Any:
        lstm, readout = self.layers
        return readout(lstm(windows)[0][:, -1])[:, 0]

    def _all(self, windows: Any) -> Any:
        with self.torch.inference_mode():
            return self.torch.cat([self._forward(some) for some in windows.split(1024)])


class Nhits:
    """neuralforecast's N-HiTS, one row ahead, with the row's inputs as known ones."""

    interval = "none"

    def __init__(self, threads: int) -> None:
        self.package: Any = importlib.import_module("neuralforecast")
        self.models: Any = importlib.import_module("neuralforecast.models")
        self.scale: Any = None
        self.label_scale: Any = None
        self.forecast: Any = None

    def fit(self, panel: Panel) -> None:
        """Train for a fixed number of steps."""
        self.scale = _Scale(np.column_stack([panel.inputs, clock(panel)]))
        self.label_scale = _Scale(panel.target)
        frame = self._frame(panel)
        quiet = {"enable_progress_bar": False, "logger": False, "enable_checkpointing": False}
        model = self.models.NHITS(
            h=1,
            input_size=WINDOW,
            futr_exog_list=[name for name in frame.columns if name not in ("unique_id", "ds", "y")],
            max_steps=STEPS,
            windows_batch_size=BATCH,
            scaler_type="identity",  # one by window divides by next to nothing where an input stands still
            accelerator="cpu",
            enable_model_summary=False,
            **quiet,
        )
        self.forecast = self.package.NeuralForecast(models=[model], freq="10min")
        with _quiet():
            self.forecast.fit(frame)

    def predict(self, panel: Panel) -> DoubleArray:
        """Cross-validate with a cut before every row, and the model as it is."""
        with _quiet():
            found = self.forecast.cross_validation(
                self._frame(panel), n_windows=len(panel) - WINDOW, step_size=1, use_fitted=True
            )
        predictions = self.label_scale.back(found["NHITS"].to_numpy().astype(np.float64))
        return np.concatenate([np.full(WINDOW, np.nan), predictions])

    def _frame(self, panel: Panel) -> Any:
        pandas: Any = importlib.import_module("pandas")
        columns = self.scale(np.column_stack([panel.inputs, clock(panel)]))
        frame = pandas.DataFrame(columns, columns=[*panel.input_names, "hour", "weekday"])
        return frame.assign(unique_id="house", ds=np.asarray(panel.time), y=self.label_scale(panel.target))


PEERS: dict[str, type[Boosted] | type[Arimax] | type[Lstm] | type[Nhits]] = {
    "LightGBM on lags": Boosted,
    "statsmodels SARIMAX(2, 0, 1)": Arimax,
    "torch LSTM": Lstm,
    "neuralforecast NHITS": Nhits,
}


class _Scale:
    """Mean 0 and deviation 1 of training rows."""

    def __init__(self, rows: FloatArray) -> None:
        self.centre, self.deviation = rows.mean(axis=0), rows.std(axis=0) + 1e-12

    def __call__(self, rows: FloatArray) -> DoubleArray:
        return np.asarray((rows - self.centre) / self.deviation)

    def back(self, rows: DoubleArray) -> DoubleArray:
        return np.asarray(rows * self.deviation + self.centre)


def _cut(panel: Panel) -> int:
    return int(len(panel) * (1 - HELD_OUT))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Lightning from telling about the machine and the trainer."""
    logger = logging.getLogger("pytorch_lightning")
    before = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logger.setLevel(before)
