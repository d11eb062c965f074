"""A service to look at: a small model, twenty made series that are full of trouble, live.

``python -m varnn.service.demo`` fits the model in seconds (the next time it is there), sends some minutes of
history, and goes on at five rows a second of each series until Ctrl-C. Each kind of trouble is one of
`varnn.datasets.synthetic`; of some series labels are missing, or come late.
"""

import argparse
import logging
import os
import socket
import sys
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from varnn.datasets import synthetic
from varnn.errors import VarnnError
from varnn.service.errors import Busy, Closing
from varnn.service.http.logs import Log
from varnn.service.http.server import Address, run
from varnn.service.service import Service
from varnn.service.tokens import Tokens

_log = logging.getLogger(__name__)
_KINDS = ("drift", "level-shift", "volatility", "regimes", "sensor-bias", "heavy-tails", "mixed")
_ROWS = 3000  # of a series that are made together
_STRENGTH = 2.0  # of trouble, so that it is seen within minutes
_MISSING = 0.15  # share of labels that never come, of series that lack some
_LATEST = 12  # rows that a label comes late, at most, of series whose labels do
_TOGETHER = 50  # rows of each series in a group of history


@dataclass
class MadeSeries:
    """A made series as a sender sees it: an x now, and labels when they are known.

    Parameters
    ----------
    name : str
        Name of the series.
    kind : str
        Its trouble: a kind of `varnn.datasets.synthetic`.
    labels : str, default="in time"
        ``"in time"``, with the next row; ``"missing"``, now and then; or ``"late"``, by some rows.
    seed : int, default=0
        Where the numbers are drawn from.

    Examples
    --------
    >>> made = MadeSeries("boiler", "drift")
    >>> [first] = made.messages("2026-11-16T10:00:00.0")
    >>> sorted(first)
    ['key', 'series', 'time', 'x']
    >>> [message] = made.messages("2026-11-16T10:00:00.2")
    >>> sorted(message)                                    # the label of the row before comes with it
    ['key', 'last_y', 'series', 'time', 'x']
    """

    name: str
    kind: str
    labels: str = "in time"
    seed: int = 0
    _owed: list[tuple[int, str, float]] = field(
        default_factory=list
    )  # labels: row they come with, key, label
    _row: int = 0

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._rows = self._made()

    def messages(self, at: str) -> list[dict[str, Any]]:
        """What is sent at a time: labels that are due, and the next x."""
        x, y = next(self._rows)
        message: dict[str, Any] = {"series": self.name, "key": at, "time": at, "x": x}
        due = [one for one in self._owed if one[0] <= self._row]
        self._owed = [one for one in self._owed if one[0] > self._row]
        said: list[dict[str, Any]] = []
        if self.labels == "late":
            said = [{"series": self.name, "for": key, "y": label, "key": f"y {key}"} for _, key, label in due]
            self._owed.append((self._row + int(self._random.integers(1, _LATEST)), at, y))
        else:
            if due:
                message["last_y"] = due[0][2]
            if self.labels != "missing" or self._random.random() > _MISSING:
                self._owed.append((self._row + 1, at, y))
        self._row += 1
        return [*said, message]

    def _made(self) -> Iterator[tuple[dict[str, float], float]]:
        """Rows without an end, some thousand at a time."""
        for block in range(1 << 30):
            seed = self.seed + 1000 * block
            panel = synthetic.make(self.kind, rows=_ROWS, strength=_STRENGTH, seed=seed).panel
            for x, y in zip(panel.inputs.tolist(), panel.target.tolist(), strict=True):
                yield dict(zip(panel.input_names, x, strict=True)), y


def made_series(count: int = 20, seed: int = 0) -> list[MadeSeries]:
    """Series with every kind of trouble in turn; the last ones have labels that are missing, or late.

    Parameters
    ----------
    count : int, default=20
        How many.
    seed : int, default=0
        Where their numbers are drawn from.

    Examples
    --------
    >>> [one.name for one in made_series(3)]
    ['drift 1', 'level-shift 1, labels missing', 'volatility 1, labels late']
    """
    series = []
    for number in range(count):
        kind, turn = _KINDS[number % len(_KINDS)], number // len(_KINDS) + 1
        labels = {count - 2: "missing", count - 1: "late"}.get(number, "in time")
        name = f"{kind} {turn}" if labels == "in time" else f"{kind} {turn}, labels {labels}"
        series.append(MadeSeries(name, kind, labels, seed + number))
    return series


def fit_model(path: Path) -> None:
    """Fit a small model on rows like those to come, in seconds, and keep it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "demo.varnn"
    >>> fit_model(path)
    >>> path.stat().st_size > 10_000
    True
    """
    from varnn.estimator.details import Details
    from varnn.estimator.regressor import VARNNRegressor

    panel = synthetic.make("mixed", rows=_ROWS, seed=99).panel
    # An engine that is compiled would take longer to compile than this one takes to train.
    model = VARNNRegressor(ensemble=1, epochs=15, random_state=0, details=Details(engine="fused"))
    model.fit(panel).save(path)


class Feeder:
    """A thread that sends what made series say, at a steady rate.

    Parameters
    ----------
    service : Service
        To whom.
    stream : str
        To which stream.
    series : sequence of MadeSeries
        What.
    rate : float, default=5.0
        Rows a second of each series.
    """

    def __init__(
        self, service: Service, stream: str, series: Sequence[MadeSeries], *, rate: float = 5.0
    ) -> None:
        self._service, self._stream, self._series = service, stream, series
        self._step = 1 / rate
        self._stop = Event()
        self._thread = Thread(target=self._work, name="demo", daemon=True)

    def send_history(self, rows: int) -> None:
        """Send rows up to now, as fast as they are taken."""
        begun = time.time() - rows * self._step
        for first in range(0, rows, _TOGETHER):
            times = [begun + row * self._step for row in range(first, min(first + _TOGETHER, rows))]
            self._send([message for at in times for message in self._messages(at)])

    def start(self) -> None:
        """Go on live."""
        self._thread.start()

    def close(self) -> None:
        """Send no more."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        at = time.time()
        while not self._stop.wait(max(0.0, at - time.time())):
            try:
                self._send(self._messages(at))
            except Busy:
                pass  # this moment is lost, as it is for a sensor
            except Closing:
                return
            at = max(at + self._step, time.time())

    def _messages(self, at: float) -> list[dict[str, Any]]:
        when = str(np.datetime64(int(at * 1000), "ms"))
        return [message for one in self._series for message in one.messages(when)]

    def _send(self, messages: list[dict[str, Any]]) -> None:
        for answer in self._service.stream(self._stream).submit(messages).result():
            if "error" in answer:
                _log.warning("the demo was refused: %s", answer["error"])


def run_demo(
    folder: Path, address: Address, *, series: int = 20, history: int = 600, browser: bool = True
) -> None:
    """Serve made series until Ctrl-C.

    Parameters
    ----------
    folder : Path
        Folder of the service and of its model, both gone on with where they are there.
    address : Address
        Where to listen.
    series : int, default=20
        Series that are made.
    history : int, default=600
        Rows of each that are sent before the page is opened, where the folder is new.
    browser : bool, default=True
        Whether to open the page, where there is a screen.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "demo.varnn"
    if not model.exists():
        _say("fitting a small model ...")
        fit_model(model)
    with Service(folder) as service:
        live = service.serve(model)
        feeder = Feeder(service, live.name, made_series(series, seed=int(time.time())))
        if not live.n_series:  # otherwise there is one, of the last time
            _say(f"sending {history} rows of history of each of {series} series ...")
            feeder.send_history(history)
        feeder.start()

        def ready(url: str) -> None:
            _say(f"dashboard {url}/  (live; kept in {folder}/; Ctrl-C ends it)")
            if browser and _has_screen():
                webbrowser.open(f"{url}/")

        try:
            run(
                service,
                Tokens(folder / "tokens.json"),
                address,
                log=Log(form="text", level="warning"),
                ready=ready,
            )
        finally:
            feeder.close()


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _has_screen() -> bool:
    """Tell whether a browser would open in a window, and not in this terminal."""
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demonstration as a command."""
    parser = argparse.ArgumentParser("python -m varnn.service.demo", description="Made series, served live.")
    parser.add_argument(
        "--data", type=Path, default=Path("demo.service"), help="folder to keep everything in"
    )
    parser.add_argument("--port", type=int, help="port; by default 8000, or any if that is taken")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")
    given = parser.parse_args(arguments)
    port = given.port
    if port is None:
        with closing(socket.socket()) as probe:
            port = 0 if probe.connect_ex(("127.0.0.1", 8000)) == 0 else 8000
    try:
        run_demo(given.data, Address(port=port), browser=not given.no_browser)
    except VarnnError as error:
        _say(f"error: {error}")
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
