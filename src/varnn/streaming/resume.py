"""Which of the rows that a model keeps a stream starts from."""

from collections.abc import Sequence
from typing import Any

from varnn.errors import ConfigError, DataError
from varnn.model.fitted import Fitted, LastRows

Resume = bool | str | Sequence[str]


def kept_series(fitted: Fitted, n_series: int | None, resume: Any) -> list[LastRows]:
    """Find the last training rows of the series that a stream goes on with.

    Parameters
    ----------
    fitted : Fitted
        The model.
    n_series : int or None
        Series of the stream, None for one.
    resume : bool, str or sequence of str
        True where the model keeps as many series; else their names.
    """
    kept, count = fitted.last_rows, n_series or 1
    if resume is True:
        if len(kept) != count:
            raise ConfigError(
                f"resume=True needs a model that keeps as many series as the stream has, {count}; it keeps "
                f"{len(kept)}: {list(kept)[:5]}. Name the series: resume={next(iter(kept), 'name')!r}."
            )
        return list(kept.values())
    names = [resume] if isinstance(resume, str) else list(resume)
    missing = [name for name in names if name not in kept]
    if missing:
        raise DataError(
            f"resume goes on after the training rows of a series; {missing[:5]} were not trained on. The "
            f"model keeps {list(kept)[:10]}."
        )
    if len(names) != count:
        raise ConfigError(f"resume must name each series of the stream, {count} of them; got {len(names)}.")
    return [kept[name] for name in names]
