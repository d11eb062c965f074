"""A panel -> the section of a page that says what was understood: the facts that the command prints."""

from collections.abc import Collection

from varnn.data.constant import constant_target
from varnn.data.leaks import advice
from varnn.data.panel import Panel
from varnn.data.understood import understood
from varnn.report.page import Report

_NAMES = 40  # of columns, in a line


def add_understood(
    report: Report,
    panel: Panel,
    *,
    leak: str | None = None,
    guessed: Collection[str] = (),
    labelled: bool = True,
    learnt_from: Panel | None = None,
) -> None:
    """Add target, time, sampling step, series, inputs, what was left out and why, and leaks.

    Parameters
    ----------
    report : Report
        The page to add to.
    panel : Panel
        The rows.
    leak : str or None, default=None
        Which inputs determine the target of their own row, in words, as `varnn.data.leaks` says it.
    guessed : collection of str, default=()
        Which of "time" and "series" were guessed.
    labelled : bool, default=True
        Whether the target is looked at at all.
    learnt_from : Panel or None, default=None
        The rows among these that a model learns from, to say where its target is the same in all of them;
        None takes all rows.
    """
    found = understood(panel, labelled=labelled)
    hints = dict.fromkeys(guessed, " (a guess)")
    facts = found.lines(hints, names=_NAMES)
    notes = [("look" if note.is_doubt else "note", f"{note.text}.") for note in found.notes]
    alike = constant_target(panel, "rows") if learnt_from is None else constant_target(learnt_from)
    if alike is not None:
        notes.append(("look", f"{alike}."))
    if leak is not None:
        notes.append(("an exact leak", f"{advice(leak)}."))
    report.add_points("What was understood", [*facts.items(), *notes], compact=True)
