"""All of a fit, stage after stage: one row ahead, again on all rows, several rows ahead; or cut short.

Ctrl-C, or an event that is set, ends the stage under way and skips those after it. What was finished, or is
fit for use, is kept, and the model's summary says under "interrupted" where it was cut.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event

from varnn.data.panel import Panel
from varnn.fitting.again import refit
from varnn.fitting.ahead import fit_forecaster
from varnn.fitting.one_step import fit
from varnn.fitting.settings import Settings
from varnn.model.fitted import Fitted, last_rows_of
from varnn.model.forecast import Forecaster
from varnn.network.training import Epoch

logger = logging.getLogger(__name__)


def fit_in_stages(
    settings: Settings,
    training: Panel,
    validation: Panel | None,
    *,
    rows: Panel,
    again: bool,
    horizon: int,
    known: Sequence[str],
    seed: int,
    on_epoch: Callable[[Epoch], None],
    stop: Event | None = None,
) -> tuple[Fitted, Forecaster | None]:
    """Fit a model, and what looks ahead where the horizon is above 1.

    Parameters
    ----------
    settings, seed
        How.
    training, validation
        Rows to learn from, and to choose on (None: nothing is chosen).
    rows
        All rows given.
    again
        Whether to train again on these once everything is chosen.
    horizon, known
        Rows ahead, and inputs that are known so far ahead.
    on_epoch
        Called after each epoch with its line of the history, and ``progress``, the share of all done.
    stop
        Cuts the fit short once it is set. If nothing is trained by then, KeyboardInterrupt is raised.
    """
    to_say, stop = stop is None, stop or Event()  # whoever gave one says what is kept
    stages = 1 + again + (horizon > 1)

    def reporter(stage: int) -> Callable[[Epoch], None]:
        return lambda line: on_epoch({**line, "progress": (stage + line["progress"]) / stages})

    fitted = fit(settings, training, validation, rows=rows, seed=seed, on_epoch=reporter(0), stop=stop)
    forecaster, left_out = None, []
    if again:
        try:
            _refuse_if(stop)
            fitted = refit(fitted, settings, training, rows, seed=seed, on_epoch=reporter(1), stop=stop)
        except KeyboardInterrupt:
            stop.set()
            left_out.append("not trained again on all rows")
    if horizon > 1:
        try:
            _refuse_if(stop)
            forecaster = fit_forecaster(
                settings,
                training,
                validation,
                rows=rows if again else None,
                horizon=horizon,
                known=known,
                seed=seed,
                on_epoch=reporter(stages - 1),
                stop=stop,
            )
            fitted = replace(fitted, last_rows=last_rows_of(rows, fitted.pipeline, forecaster.rows_kept))
            if again and stop.is_set():
                left_out.append("what looks ahead not trained again on all rows")
        except KeyboardInterrupt:
            stop.set()
            left_out.append("looks one row ahead only")
    if stop.is_set() and ("interrupted" in fitted.summary or left_out):
        cut = fitted.summary.get("interrupted", "after its members were trained")
        fitted.summary["interrupted"] = "; ".join([cut, *left_out])
        if to_say:
            logger.warning("training was cut short %s.", fitted.summary["interrupted"])
    return fitted, forecaster


def _refuse_if(stop: Event) -> None:
    if stop.is_set():
        raise KeyboardInterrupt
