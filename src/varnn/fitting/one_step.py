"""Panel + settings -> Fitted: what is left to be chosen, the members, and how much of them to use.

Everything that is chosen here is chosen on the validation rows: the form of the linear part
(`varnn.model.linear`), the cycles of the calendar, the epoch each member is kept at, and the share of the
network's correction that is added to the linear part.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Event

import numpy as np

from varnn.data.panel import Panel
from varnn.fitting.candidates import Progress, candidates, stacked
from varnn.fitting.judging import adaptation, judged
from varnn.fitting.settings import Settings
from varnn.model.fitted import Fitted, last_rows_of
from varnn.model.intervals import Calibrator, ErrorScale
from varnn.model.linear import LABEL_LAGS
from varnn.network.training import Epoch, one_thread, train_members


@one_thread()
def fit(
    settings: Settings,
    training: Panel,
    validation: Panel | None,
    *,
    rows: Panel,
    seed: int,
    on_epoch: Callable[[Epoch], None] | None = None,
    stop: Event | None = None,
    calibrator: type[Calibrator] = ErrorScale,
) -> Fitted:
    """Train a model.

    Parameters
    ----------
    settings
        How.
    training, validation
        Rows to learn from, and to choose on (None: nothing is chosen).
    rows
        All rows given, whose ends a closed-loop forecast goes on from.
    seed
        The first member's; the others have the following ones.
    on_epoch
        Called after each epoch with its line of the history, and ``progress``, the share of all done.
    stop
        Ends training once it is set: what was trained by then is the model, and its summary says so.
    calibrator
        Interval method.
    """
    stop = stop or Event()
    config = settings.config(training)
    choices = candidates(settings, training, validation)
    progress = Progress((len(choices) + settings.ensemble - 1) * config.epochs, on_epoch)
    firsts = train_members([one.member(seed) for one in choices], config, progress, stop)
    errors = [one.error(trained) for one, trained in zip(choices, firsts, strict=True)]
    best = int(np.argmin(errors))
    chosen, members = choices[best], [firsts[best]]
    if settings.ensemble > 1 and not stop.is_set():
        more = [chosen.member(seed + index) for index in range(1, settings.ensemble)]
        with suppress(KeyboardInterrupt):  # then the first one is the model
            members += [one for one in train_members(more, config, progress, stop) if one.history]
        del more  # they hold the prepared rows
    fitted = Fitted(
        architecture=chosen.architecture,
        weights=stacked(members),
        pipeline=chosen.pipeline,
        window=config.window,
        input_names=training.input_names,
        target_name=training.target_name,
        time_name=training.time_name,
        series_name=training.series_name,
        label_range=(float(np.nanmin(rows.target)), float(np.nanmax(rows.target))),
        last_rows=last_rows_of(rows, chosen.pipeline, config.window + max(LABEL_LAGS) + 1),
        summary={
            "rows": len(training),
            "series": training.n_series,
            "epochs": [len(one.history) for one in members],
            "best_epoch": [one.best_epoch for one in members],
            "history": [
                {**line, "member": index} if len(members) > 1 else line
                for index, one in enumerate(members)
                for line in one.history
            ],
        },
    )
    if stop.is_set():
        longest = max(len(one.history) for one in members)
        fitted.summary["interrupted"] = (
            f"after {longest} of {config.epochs} epochs, with {len(members)} of {settings.ensemble} members"
        )
    if len(choices) > 1:
        fitted.summary["inputs"] = {
            str(one): error for one, error in zip(choices, errors, strict=True) if np.isfinite(error)
        }
    if settings.adapt is not None:
        fitted = replace(fitted, adaptation=adaptation(settings, fitted, chosen))
    if validation is None:
        return fitted
    del choices, chosen  # their prepared rows may go: of millions of rows they are large
    return judged(fitted, training, validation, intervals=calibrator if settings.intervals else None)
