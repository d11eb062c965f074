"""Many fitted models by the names of their series, each read when it is asked for."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from varnn._types import DoubleArray
from varnn.data.arrow_streams import is_table
from varnn.data.display import html_card, some
from varnn.data.files import write_atomically
from varnn.data.panel import Panel
from varnn.data.rules import shown
from varnn.errors import DataError, ModelFileError, nearest
from varnn.estimator.loading import from_bytes
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.intervals import Interval, check_levels
from varnn.persistence.model_file import check_replaceable
from varnn.scale._file_shelf import INDEX, SUFFIX, FileShelf
from varnn.scale._listed_shelf import ListedShelf
from varnn.scale._names import SUFFIX as OF_ONE
from varnn.scale._shelf import Shelf
from varnn.streaming.closed_loop import each_warning_once

logger = logging.getLogger(__name__)

_SHOWN = 5  # names in a line
_MOST_COMPARED = 2_000  # names that one is looked for among, where it is misspelt


class NoModelError(DataError, KeyError):
    """There is no model of that name."""

    def __str__(self) -> str:  # KeyError's own would put quotes around it
        return str(self.args[0])


class Models(Mapping[str, VARNNRegressor]):
    """Many fitted models, by the names of their series: what `varnn.scale.fit_many` gives.

    A mapping whose models are read when they are asked for, one at a time: of a hundred thousand in a file,
    the others are not looked at. Each time it is asked for, a model is read anew: keep it for several calls.
    Any number of processes and threads may read, also while `fit_many` writes.

    Attributes
    ----------
    failures : dict of str
        Why series have no model, by name. One that has had a model before keeps it.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import Panel, VARNNRegressor
    >>> from varnn.scale import fit_many
    >>> labels = np.sin(np.arange(120) / 3)
    >>> panel = Panel.from_arrays(None, labels, series=60 * ["north"] + 60 * ["south"])
    >>> models = fit_many(panel, VARNNRegressor(epochs=1, ensemble=1, hidden_size=4), workers=1)
    >>> list(models), "west" in models, models.failures
    (['north', 'south'], False, {})
    >>> models["south"].predict(None, labels[60:]).shape, models.predict(panel).shape
    ((60,), (120,))
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    @classmethod
    def open(cls, path: str | Path) -> "Models":
        """Open a ``.varnns`` file, or a folder of ``.varnn`` files; no model is read."""
        place = Path(path)
        if not place.exists():
            raise ModelFileError(f"there is no file or folder {str(path)!r}. Check the path.")
        if place.is_dir() and not (place / INDEX).exists():
            if not any(place.glob(f"*{OF_ONE}")):
                raise ModelFileError(
                    f"the folder {str(path)!r} holds no models: neither {INDEX} nor any {OF_ONE} file. Check "
                    "the path."
                )
            return cls(ListedShelf(place))
        return cls(FileShelf(place))

    def __getitem__(self, name: str) -> VARNNRegressor:
        """Read the model of a series."""
        if not isinstance(name, str):
            raise NoModelError(f"names of models are texts; got {shown(name)}.")
        return from_bytes(self._bytes(name), self._called(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._shelf.names())

    def __len__(self) -> int:
        return self._shelf.count()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._shelf.has(name)

    def __repr__(self) -> str:
        failed = len(self._shelf.failures())
        return f"<{len(self):,} models in {self._shelf.place}{f', {failed:,} failed' if failed else ''}>"

    def _repr_html_(self) -> str:
        facts = {"models": f"{len(self):,}: {some(self._shelf.names())}", "failed": f"{len(self.failures):,}"}
        if self.waiting:
            facts["not fitted yet"] = f"{self.waiting:,}"
        why = [f"{name}: {reason}" for name, reason in list(self.failures.items())[:_SHOWN]]
        return html_card(f"Models in {self._shelf.place}", facts, words=why)

    @property
    def failures(self) -> dict[str, str]:
        """Why series have no model, or no newer one, by name."""
        return self._shelf.failures()

    @property
    def waiting(self) -> int:
        """How many series were to be fitted when `fit_many` was stopped."""
        return self._shelf.waiting()

    @property
    def settings(self) -> list[tuple[dict[str, Any], int]]:
        """Settings, and how many models have them; the most frequent ones first."""
        return [(dict(json.loads(text)), models) for text, models in self._shelf.settings()]

    def facts(self, name: str) -> dict[str, Any]:
        """What is known of a model's fit without reading it: rows, seconds, validation error, warnings."""
        if not self._shelf.has(name):
            raise self._none(name)
        return self._shelf.facts(name)

    @property
    def columns(self) -> tuple[list[str], dict[str, tuple[str, ...]]]:
        """Columns of a table that any model makes inputs from, and categories of those that hold texts."""
        columns = dict.fromkeys(one for found in self._shelf.different("columns") for one in found or ())
        categories: dict[str, dict[str, None]] = {}
        for found in self._shelf.different("categories"):
            for column, known in (found or {}).items():
                categories.setdefault(column, {}).update(dict.fromkeys(known))
        return list(columns), {column: tuple(known) for column, known in categories.items()}

    def export(self, name: str, path: str | Path) -> None:
        """Write the model of a series into a ``.varnn`` file of its own, byte for byte."""
        blob = self._bytes(name)
        from_bytes(blob, self._called(name))  # refuses what nobody could read
        check_replaceable(path)
        write_atomically(path, blob)

    def predict(
        self,
        panel: Panel,
        *,
        interval: float | Sequence[float] | None = None,
        resume: bool | None = None,
    ) -> Any:
        """Predict every row of a panel, each series by its own model, which is read once.

        Parameters
        ----------
        panel : Panel, or long frame
            The rows; names of its series are those of the models.
        interval, resume : float or sequence of float or None, bool or None, default=None
            Levels of intervals, and whether the rows follow the training rows: see
            :meth:`VARNNRegressor.predict`.

        Returns
        -------
        array of shape (n_rows,), or Interval
            In the panel's order, or the frame's, to rounding what each model gives for its rows; NaN for
            series that have no model, of which a line is logged.
        """
        given: Any = panel
        if is_table(given):
            panel = Panel.from_frame(given)
            said = self.predict(panel, interval=interval, resume=resume)
            if interval is None:
                return panel.in_caller_order(said)
            return Interval(*(panel.in_caller_order(one) for one in said))
        levels = 0 if interval is None else len(check_levels(interval))
        several = isinstance(interval, Sequence | np.ndarray)
        shape = (len(panel), levels) if several else (len(panel),)
        found: list[DoubleArray] = [np.full(len(panel), np.nan)]
        if interval is not None:
            found += [np.full(shape, np.nan), np.full(shape, np.nan)]
        lacking = []
        with each_warning_once():
            for name, first, last in zip(panel.ids, panel.starts[:-1], panel.starts[1:], strict=True):
                if not self._shelf.has(name):
                    lacking.append(name)
                    continue
                rows = panel.between(int(first), int(last))
                said = self[name].predict(rows, interval=interval, resume=resume)
                for values, one in zip(found, said if interval is not None else [said], strict=True):
                    values[first:last] = one
        if lacking:
            self._tell(lacking, panel.n_series)
        return found[0] if interval is None else Interval(*found)

    def _tell(self, lacking: list[str], n_series: int) -> None:
        """Say which series cannot be predicted; refuse if none can."""
        names = ", ".join(map(repr, lacking[:_SHOWN])) + (", ..." if len(lacking) > _SHOWN else "")
        if len(lacking) == n_series:
            raise DataError(
                f"none of the {n_series:,} series has a model in {self._shelf.place}: {names}. Models are "
                f"called {', '.join(map(repr, self._shelf.names()[:_SHOWN]))}, ..."
            )
        logger.warning(
            "%s of %s series have no model, and NaN for predictions: %s.",
            f"{len(lacking):,}",
            f"{n_series:,}",
            names,
        )

    def _bytes(self, name: str) -> bytes:
        blob = self._shelf.get(name)
        if blob is None:
            raise self._none(name)
        return blob

    def _called(self, name: str) -> str:
        return f"the model of series {name!r} in {self._shelf.place}"

    def _none(self, name: str) -> NoModelError:
        """Say why there is no model."""
        if reason := self._shelf.reason(name):
            return NoModelError(
                f"series {name!r} has no model in {self._shelf.place}, as it failed: {reason}"
            )
        hint = nearest(name, self._shelf.names()) if len(self) <= _MOST_COMPARED else "Check the name."
        return NoModelError(f"there is no model of series {name!r} in {self._shelf.place}. {hint}")


def is_of_many(path: Path) -> bool:
    """Tell whether a path is that of many models: a folder, or a file that says so, whatever its name.

    Examples
    --------
    >>> is_of_many(Path("house.varnn"))
    False
    """
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return path.suffix == SUFFIX
