"""Once everything is chosen, learn from all rows: those that were held out to choose on are the latest.

Nothing is chosen here. Each member is trained anew, for as many epochs as were best for it before, on
rows prepared in the form that was chosen. How much of the network's correction to add, how fast to
forget and what quantiles its errors have was measured on rows it had not seen, and stays.
"""

from collections.abc import Callable
from dataclasses import replace
from threading import Event

import numpy as np

from varnn.data import allocator
from varnn.data.panel import Panel
from varnn.fitting.candidates import Progress, stacked
from varnn.fitting.judging import LATEST, seen_by_error_scale
from varnn.fitting.settings import Settings
from varnn.model.adaptation import Adaptation
from varnn.model.fitted import Fitted, last_rows_of
from varnn.network.training import Epoch, Member, one_thread, train_members


@one_thread()
def refit(
    fitted: Fitted,
    settings: Settings,
    training: Panel,
    rows: Panel,
    *,
    seed: int,
    on_epoch: Callable[[Epoch], None] | None = None,
    stop: Event | None = None,
) -> Fitted:
    """Train a model again on all rows.

    Parameters
    ----------
    fitted
        What `varnn.fitting.one_step.fit` made of ``training``, with validation rows to choose on.
    settings, seed
        As they were then.
    training, rows
        The rows it was trained on, and all of them.
    on_epoch
        Called after each epoch with its line of the history, and ``progress``, the share of all done.
    stop
        Ends training once it is set, and raises KeyboardInterrupt: half of it is worth less than ``fitted``.
    """
    stop = stop or Event()
    allocator.release()  # of what was chosen from
    config, best = settings.config(training), fitted.summary["best_epoch"]
    pipeline = fitted.pipeline.refitted(rows, settings.scale)
    prepared = pipeline.rows(rows)
    members = [
        Member(fitted.architecture, prepared, None, seed + index, stop_after=epochs)
        for index, epochs in enumerate(best)
    ]
    trained = train_members(members, config, Progress(sum(best), on_epoch), stop)
    if stop.is_set():
        raise KeyboardInterrupt
    latest = prepared.latest(LATEST)
    del prepared, members  # of millions of rows they are large
    allocator.release()
    again = replace(
        fitted,
        pipeline=pipeline,
        weights=stacked(trained),
        last_rows=last_rows_of(rows, pipeline, max(len(one.target) for one in fitted.last_rows.values())),
        summary={**fitted.summary, "refitted on": len(rows)},
    )
    if fitted.adaptation is not None:
        hidden = again.hidden(latest).hidden
        known = Adaptation.of(hidden, np.ones(1), fitted.adaptation.forgetting)
        rescaled = (fitted.pipeline.scaling.target_scale / pipeline.scaling.target_scale) ** 2
        again = replace(again, adaptation=replace(known, noise=fitted.adaptation.noise * rescaled))
    if fitted.error_scale is not None:
        before, after = seen_by_error_scale(fitted, training), seen_by_error_scale(again, rows)
        again = replace(again, error_scale=fitted.error_scale.moved(before, after))
    return again
