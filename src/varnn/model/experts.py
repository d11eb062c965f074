"""The experts whose predictions a default prediction is made of, and who of them goes on learning.

::

    persistence              the last label
    seasonal persistence     the label a season ago, where the linear part has seasons
    linear part              as trained
    linear part, learning    its coefficients follow the labels
    network                  linear part + the network's correction, as trained
    network, learning        linear part + a readout that follows the labels: once slowly, once fast
    boosting                 where it was asked for (`varnn.model.boosting`)

What learns does so as `varnn.model.adaptation` says, each series by itself. The readout that follows reads
the hidden layer and the regressors of the linear part together, so that both may change at once. What is
predicted is a convex combination, whose weights follow as `varnn.model.aggregation` says: never much worse
than the best of them lately.

All of it is relative to the linear part as trained: its predictions, and what they leave of the labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, IntArray
from varnn.data.preparation import Scaling
from varnn.model.adaptation import Adaptation, Adapter, corrections
from varnn.model.aggregation import Aggregator
from varnn.model.boosting import Trees, seen
from varnn.model.linear import LinearRows
from varnn.network import compiled_code

FORGETTING = (0.9999, 0.999)  # of the readout: slowly and fast
LINEAR_FORGETTING = (0.999,)
MOST_JOINED = 160  # regressors that the readout sees beside the hidden layer: more would take long
NEVER = 1e60  # deviation of a regressor that did not change in training: it stays at zero
FARTHEST = 10.0  # deviations of a regressor from its mean: what is farther counts as so far
_LOWEST, _HIGHEST = np.array(-FARTHEST), np.array(FARTHEST)  # quicker to compare with than numbers

PERSISTENCE, SEASONAL_PERSISTENCE = "persistence", "seasonal persistence"
LINEAR, LINEAR_LEARNING = "linear part", "linear part, learning"
NETWORK, BOOSTING = "network", "boosting"


@dataclass(frozen=True, eq=False, kw_only=True)
class Experts:
    """What experts go on learning with, and how much each is believed at the start.

    Parameters
    ----------
    readout : Adaptation
        Of the network's readout.
    linear : Adaptation or None
        Of the linear part; None where there is none.
    centre, deviation : array of shape (F,)
        Mean and standard deviation of the linear part's regressors; huge where one never changes.
    unit : float
        What a regressor of one deviation counts beside the hidden layer: the root mean square of that. 0
        where the readout sees the hidden layer alone.
    season : int or None
        Column of the regressors that says how far off the label a season ago is; None without seasons.
    noise : float
        Mean square of what predictions leave, in the target's units.
    prior : array of shape (K,)
        Weights at the start of a series, in the order of ``names``.
    trees : Trees or None, default=None
        The boosting expert, where it was asked for.
    """

    readout: Adaptation
    linear: Adaptation | None
    centre: DoubleArray
    deviation: DoubleArray
    unit: float
    season: int | None
    noise: float
    prior: DoubleArray
    trees: Trees | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the experts, in the order of their weights."""
        return names_of(
            self.readout.forgetting,
            linear=self.linear is not None,
            season=self.season is not None,
            boosting=self.trees is not None,
        )

    def standardised(self, regressors: DoubleArray) -> DoubleArray:
        """Bring regressors of the linear part to deviations from their means: (n, F)."""
        # As rows of a matrix: NumPy takes twice as long where the number of axes differs.
        found = regressors - self._centre_row
        found /= self._deviation_row
        np.maximum(found, _LOWEST, out=found)
        np.minimum(found, _HIGHEST, out=found)
        return np.asarray(found)

    @cached_property
    def _centre_row(self) -> DoubleArray:
        return self.centre[None]

    @cached_property
    def _deviation_row(self) -> DoubleArray:
        return self.deviation[None]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All numbers by name, as arrays for a file."""
        season = -1 if self.season is None else self.season
        found: dict[str, npt.NDArray[Any]] = {
            "readout.gain": self.readout.gain,
            "forgetting": np.array(self.readout.forgetting),
            "numbers": np.array([self.readout.noise, self.noise, self.unit, season], np.float64),
            "prior": self.prior,
        }
        if self.linear is not None:
            found |= {"linear.gain": self.linear.gain, "centre": self.centre, "deviation": self.deviation}
        if self.trees is not None:
            found |= {f"{BOOSTING}.{name}": array for name, array in self.trees.arrays().items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "Experts":
        """Undo :meth:`arrays`; KeyError where something is missing."""
        scaled_noise, noise, unit, season = arrays["numbers"].tolist()
        readout = Adaptation(
            forgetting=tuple(arrays["forgetting"].tolist()),
            gain=arrays["readout.gain"],
            noise=scaled_noise,
            common=in_common(arrays.get("centre", np.empty(0)), unit),
        )
        linear = None
        if "linear.gain" in arrays:
            linear = Adaptation(forgetting=LINEAR_FORGETTING, gain=arrays["linear.gain"], noise=scaled_noise)
        grown = {
            name.removeprefix(f"{BOOSTING}."): array
            for name, array in arrays.items()
            if name.startswith(f"{BOOSTING}.")
        }
        return cls(
            readout=readout,
            linear=linear,
            centre=arrays.get("centre", np.empty(0)),
            deviation=arrays.get("deviation", np.empty(0)),
            unit=unit,
            season=None if season < 0 else int(season),
            noise=noise,
            prior=arrays["prior"],
            trees=Trees.from_arrays(grown) if grown else None,
        )


def names_of(
    forgetting: tuple[float, ...], *, linear: bool, season: bool, boosting: bool = False
) -> tuple[str, ...]:
    """Name the experts of a model.

    Examples
    --------
    >>> names_of((0.999,), linear=False, season=False)
    ('network', 'network, learning')
    """
    learning: tuple[str, ...] = (f"{NETWORK}, learning",)
    if len(forgetting) > 1:
        learning = (f"{NETWORK}, learning slowly", f"{NETWORK}, learning fast")
    simple = (PERSISTENCE, *([SEASONAL_PERSISTENCE] if season else []), LINEAR, LINEAR_LEARNING)
    return (*(simple if linear else ()), NETWORK, *learning, *([BOOSTING] if boosting else []))


def in_common(centre: DoubleArray, unit: float) -> int:
    """How many features all readouts have in common: regressors, where they see them, and the constant."""
    return 1 + (len(centre) if unit else 0)


def read_by_readout(hidden: npt.NDArray[Any], standard: DoubleArray, unit: float) -> npt.NDArray[Any]:
    """Join hidden layers (E, ..., K) and regressors (..., F) in a unit; without one, hidden layers alone."""
    if not unit:
        return hidden
    shape = (len(hidden), *standard.shape)
    return np.concatenate([hidden, np.broadcast_to(unit * standard, shape)], axis=-1)


class Followed(NamedTuple):
    """Some rows as the experts saw them: N rows, K experts."""

    predictions: DoubleArray  # (N,)
    experts: DoubleArray  # (N, K): what each said
    weights: DoubleArray  # (N, K)


class LiveExperts:
    """The experts of n series in step, as they learn and are believed.

    Parameters
    ----------
    experts : Experts
        What they learn with.
    scaling : Scaling
        Of the network's target.
    n_series : int
        Series, n.
    """

    def __init__(self, experts: Experts, scaling: Scaling, n_series: int) -> None:
        self.experts, self.scaling = experts, scaling
        self.readout = Adapter(experts.readout, n_series)
        self.linear = None if experts.linear is None else Adapter(experts.linear, n_series)
        self.aggregator = Aggregator(experts.prior, experts.noise, n_series)
        # What the network says where it has nothing to add to the linear part.
        self._nothing = -scaling.target_offset / scaling.target_scale
        self._nothing_to_add = np.full((1, n_series), self._nothing)
        self._sayings, self._unit = self._made_sayings(), np.array(experts.unit)
        self._told = np.ones((len(self._sayings), n_series))
        members = len(experts.readout.gain)
        self._shares = np.full(members, 1 / members)

    def predict(
        self,
        linear: LinearRows,
        hidden: npt.NDArray[Any],
        outputs: npt.NDArray[Any],
        inputs: npt.NDArray[Any],
    ) -> DoubleArray:
        """Predict one row of each series: hidden (E, n, K), outputs (E, n), scaled inputs (n, P) -> (n,)."""
        standard, unit = self._standard(linear), self.experts.unit
        followed = None
        if self.linear is not None:
            followed = self.linear.correct(standard[None], self._nothing_to_add)[0]
        outputs = outputs.astype(np.float64)
        learnt = self.readout.correct(hidden, outputs, standard * self._unit if unit else None)
        mean = self._shares.dot(outputs)
        said = self._said(linear, followed, mean, learnt, self._grown(inputs, standard))
        found = linear.predictions + self.aggregator.combine(said)
        return found if type(linear.doubt) is float else found + linear.doubt  # a number is nothing

    def learn(self, targets: npt.NDArray[Any], residuals: DoubleArray) -> None:
        """Take in the network's targets (n,) of the rows last predicted, and what the linear part left.

        NaN teaches nothing.
        """
        self.readout.learn(targets)
        if self.linear is not None:
            self.linear.learn(targets)
        self.aggregator.learn(residuals)

    def follow(
        self,
        linear: LinearRows,
        hidden: npt.NDArray[Any],
        outputs: npt.NDArray[Any],
        inputs: npt.NDArray[Any],
        targets: npt.NDArray[Any],
        starts: IntArray,
    ) -> Followed:
        """Go through the series of a panel side by side, as :meth:`predict` and :meth:`learn` do row by row.

        Parameters
        ----------
        linear, hidden, outputs, inputs, targets
            Of all rows: LinearRows, and arrays of shape (E, N, K), (E, N), (N, P) and (N,).
        starts : array of shape (S + 1,)
            Row at which each series begins, and the number of rows at the end.
        """
        standard = self._standard(linear)
        quick = compiled_code.is_worth_it(len(targets))
        learn = self._learnt_compiled if quick else self._learnt
        followed, learnt = learn(hidden, standard, outputs, targets, starts)
        grown = self._grown(inputs, standard)
        said = self._said(linear, followed, outputs.mean(axis=0, dtype=np.float64), learnt, grown)
        if quick:
            from varnn.model.compiled_aggregation import follow_compiled

            combined, weights = follow_compiled(self.aggregator, said, linear.residuals, starts)
        else:
            combined, weights = self.aggregator.follow(said, linear.residuals, starts)
        said += linear.predictions[:, None]
        return Followed(linear.predictions + combined + linear.doubt, said, weights)

    def _learnt(
        self,
        hidden: npt.NDArray[Any],
        standard: DoubleArray,
        outputs: npt.NDArray[Any],
        targets: npt.NDArray[Any],
        starts: IntArray,
    ) -> tuple[DoubleArray | None, DoubleArray]:
        """What the linear part has learnt before each row, (N,), and the readout, (R, N)."""
        unit, followed = self.experts.unit, None
        if self.linear is not None:
            nothing = np.full((1, len(standard)), self._nothing)
            (followed,) = corrections(
                self.linear, lambda rows: standard[None, rows], nothing, targets, starts
            )
        learnt = corrections(
            self.readout,
            lambda rows: read_by_readout(hidden[:, rows], standard[rows], unit),
            outputs,
            targets,
            starts,
        )
        return followed, learnt

    def _learnt_compiled(
        self,
        hidden: npt.NDArray[Any],
        standard: DoubleArray,
        outputs: npt.NDArray[Any],
        targets: npt.NDArray[Any],
        starts: IntArray,
    ) -> tuple[DoubleArray | None, DoubleArray]:
        """Give the same by compiled code."""
        from varnn.model.compiled_adaptation import corrections_compiled

        unit, followed = self.experts.unit, None
        if self.linear is not None:
            nothing, unseen = np.full((1, len(standard)), self._nothing), hidden[:1, :, :0]
            (followed,) = corrections_compiled(self.linear, unseen, standard, nothing, targets, starts)
        seen = unit * standard if unit else standard[:, :0]
        return followed, corrections_compiled(self.readout, hidden, seen, outputs, targets, starts)

    def _standard(self, linear: LinearRows) -> DoubleArray:
        regressors = linear.regressors
        if regressors is None or self.linear is None:
            return np.zeros((len(linear.predictions), 0))
        return self.experts.standardised(regressors)

    def _grown(self, inputs: npt.NDArray[Any], standard: DoubleArray) -> list[DoubleArray]:
        """What the trees say, in scaled units: (n,); nothing where there are none."""
        trees = self.experts.trees
        return [] if trees is None else [trees.predict(seen(inputs, standard))]

    def _said(
        self,
        linear: LinearRows,
        followed: DoubleArray | None,
        mean: DoubleArray,
        learnt: DoubleArray,
        grown: list[DoubleArray],
    ) -> DoubleArray:
        """What each expert says, less the linear prediction: (n, K).

        Parameters
        ----------
        linear : LinearRows
            With n rows.
        followed : array of shape (n,) or None
            What the linear part has learnt, in scaled units; None without one.
        mean, learnt : arrays of shape (n,) and (R, n)
            Mean output of the network, and what its readout has learnt beside.
        grown : list of arrays of shape (n,)
            What the trees say, if there are any.
        """
        told = self._told
        if told.shape[1] != len(mean):  # rows of a panel
            told = np.ones((len(self._sayings), len(mean)))
        place = 0
        if followed is not None and linear.regressors is not None:
            told[0], told[1], told[2] = linear.last, linear.predictions, followed
            place = 3
            if self.experts.season is not None:
                told[3] = linear.regressors[:, self.experts.season]
                place = 4
        told[place] = mean
        told[place + 1 : place + 1 + len(learnt)] = learnt
        if grown:
            told[-2] = grown[0]
        return np.asarray(told.T.dot(self._sayings))

    def _made_sayings(self) -> DoubleArray:
        """What experts say as sums of what is told: (rows of `_said`, K). One product with it is quicker.

        The rows are last label, linear prediction, what the linear part has learnt, how far off the season
        ago is; mean output of the network, what its readouts have learnt, what trees say; and 1.
        """
        experts, scale, one = self.experts, self.scaling.target_scale, self.scaling.target_offset
        readouts = [f"readout {place}" for place in range(len(experts.readout.forgetting))]
        rows = ["mean", *readouts]
        said: list[dict[str, float]] = [{"mean": scale, "one": one}]
        said += [{"mean": scale, readout: scale, "one": one} for readout in readouts]
        if experts.linear is not None:
            persistence = {"last": 1.0, "linear": -1.0}
            seasonal = [] if experts.season is None else [persistence | {"season": 1.0}]
            rows = ["last", "linear", "learnt", *(["season"] if seasonal else []), *rows]
            said = [persistence, *seasonal, {}, {"learnt": scale}, *said]
        if experts.trees is not None:
            rows, said = [*rows, "trees"], [*said, {"trees": scale, "one": one}]
        return np.array([[sums.get(row, 0.0) for sums in said] for row in [*rows, "one"]])

    def state(self) -> DoubleArray:
        """All that later predictions depend on: (n, any)."""
        parts = [self.aggregator.state(), self.readout.state()]
        return np.column_stack(parts + ([] if self.linear is None else [self.linear.state()]))

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        first = self.aggregator.state().shape[1]
        second = first + self.readout.state().shape[1]
        aggregator, readout, linear = np.split(state, [first, second], axis=1)
        self.aggregator.restore(aggregator)
        self.readout.restore(readout)
        if self.linear is not None:
            self.linear.restore(linear)
