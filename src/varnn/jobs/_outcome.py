"""What a job came to, as plain data: an error of another process may be of no class that is known here."""

import builtins
import contextlib
import traceback
from typing import Generic, NamedTuple, TypeVar

from varnn import errors

Result = TypeVar("Result")


class Failure(NamedTuple):
    """Why a job has no result.

    Parameters
    ----------
    kind : str
        Name of the error's class; "WorkerDied" where the process that ran the job ended, each time.
    message : str
        What the error says.
    traceback : str
        Where it was raised, as Python prints it.
    """

    kind: str
    message: str
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Put an error into words.

        Examples
        --------
        >>> Failure.of(ValueError("no rows"))[:2]
        ('ValueError', 'no rows')
        """
        try:
            said = str(error)
        except Exception:  # of a class that cannot even say what is wrong
            said = "an error that has no words"
        return cls(type(error).__name__, said, "".join(traceback.format_exception(error)))

    @classmethod
    def not_a_job(cls, error: BaseException) -> "Failure":
        """Say that a job cannot be sent."""
        failure = cls.of(error)
        return failure._replace(message=f"a job must be something that can be pickled: {failure.message}")

    @classmethod
    def worker_died(cls, times: int, how: str) -> "Failure":
        """Say that a job ended its workers."""
        tries = "once" if times == 1 else f"{times} times"
        return cls(
            "WorkerDied",
            f"the process that ran this job died, {tries}; the last was {how}. Where it needs more memory "
            "than there is, run fewer at a time (workers).",
            "",
        )

    def error(self) -> Exception:
        """Make an error to raise here: of its class, if that is this library's or Python's own.

        Examples
        --------
        >>> Failure("DataError", "no rows", "").error()
        DataError('no rows')
        >>> Failure("Odd", "no rows", "").error()
        RuntimeError('Odd: no rows')
        """
        kind = getattr(errors, self.kind, None) or getattr(builtins, self.kind, None)
        error: Exception = errors.WorkerError(self.message)
        if self.kind != "WorkerDied":
            error = RuntimeError(f"{self.kind}: {self.message}")
            if isinstance(kind, type) and issubclass(kind, Exception):
                with contextlib.suppress(TypeError):  # one that is made of more than words
                    error = kind(self.message)
        if self.traceback:
            error.add_note(f"It was raised in a job:\n{self.traceback}")
        return error


class Done(NamedTuple, Generic[Result]):
    """A job that is finished.

    Parameters
    ----------
    index : int
        Its place among the jobs.
    result : object or None
        What the function gave; None where it failed.
    failure : Failure or None
        Why it failed; None where it did not.
    seconds : float
        How long the function took, without what was sent to and fro.
    """

    index: int  # type: ignore[assignment]  # the place, not the method of tuples
    result: Result | None
    failure: Failure | None
    seconds: float

    def value(self) -> Result:
        """The result; where there is none, the error of the job is raised.

        Examples
        --------
        >>> Done(0, None, Failure("ValueError", "no rows", ""), 0.1).value()
        Traceback (most recent call last):
        ...
        ValueError: no rows
        """
        if self.failure is not None:
            raise self.failure.error()
        return self.result  # type: ignore[return-value]  # None is a result, too
