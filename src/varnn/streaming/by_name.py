"""The streams of many series, by name: series that come when they come, each on its own."""

from typing import Any, Self

import numpy as np

from varnn.errors import ModelFileError
from varnn.model.fitted import Fitted
from varnn.persistence import model_file
from varnn.streaming._snapshot_checks import check_group
from varnn.streaming.resume import Resume
from varnn.streaming.stream import Guard, Stream


class Streams(dict[str, Stream]):
    """Streams of one model by the names of their series; one is added once it has predicted.

    They share the model's numbers, so that a series costs its own state alone, and all belong to one thread.

    Parameters
    ----------
    model : object
        A fitted ``VARNNRegressor``, or its ``fitted_``.

    Examples
    --------
    >>> from varnn import VARNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    >>> streams = Streams(model)
    >>> streams["north"] = streams.begin()
    >>> y_hat = streams["north"].predict([0.1, 0.2])
    >>> Streams.restore(model, streams.snapshot())["north"].observe(0.3) == streams["north"].observe(0.3)
    True
    """

    kind: type[Stream] = Stream

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model: Fitted = getattr(model, "fitted_", model)
        self.guard = Guard()

    def begin(self, *, resume: Resume = False) -> Stream:
        """A stream for a series that was not here before; ``resume`` as that of ``model.stream``."""
        return self.kind(self.model, resume=resume, guard=self.guard)

    def bring_back(self, state: bytes) -> Stream:
        """A stream as its own ``snapshot`` has kept it, to be put under its name."""
        return self.kind.restore(self.model, state, guard=self.guard)

    def snapshot(self) -> bytes:
        """State of all series as bytes, to go on elsewhere with :meth:`restore`."""
        tensors = {
            str(index): np.frombuffer(live.snapshot(), np.uint8) for index, live in enumerate(self.values())
        }
        header = {"format": model_file.FORMAT, "series": list(self), "model": self.model.fingerprint}
        return model_file.to_bytes(tensors, header | self._facts())

    @classmethod
    def restore(cls, model: Any, blob: bytes, what: str = "the snapshot") -> Self:
        """Go on from a snapshot, with the model it was taken from; ``what`` names it in errors."""
        streams = cls(model)
        tensors, header = model_file.from_bytes(blob, what)
        if header.get("model") != streams.model.fingerprint:
            raise ModelFileError(
                f"{what} holds the state of another model. Give that model, or another --state file."
            )
        check_group(tensors, header, what)
        for index, name in enumerate(header["series"]):
            streams[name] = streams.bring_back(tensors[str(index)].tobytes())
            if streams[name].n_series is not None:
                raise ModelFileError(f"{what} is damaged: its series {name!r} is the state of several.")
        streams._take_over(header, what)
        return streams

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by snapshot: streams and what they share stay together."""
        return type(self).restore, (self.model, self.snapshot())

    def _facts(self) -> dict[str, Any]:
        """What is no stream's own, as plain values for the header of a snapshot."""
        return {}

    def _take_over(self, facts: dict[str, Any], what: str) -> None:
        """Undo :meth:`_facts`, once the streams are here."""
