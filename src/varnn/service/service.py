"""A folder of models and streams, and all of them at work; what HTTP and the connectors stand on."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Self

from varnn.data.files import check_writable, write_atomically
from varnn.data.locks import Lock
from varnn.errors import ConfigError, DataError, ModelFileError, OutputError, VarnnError
from varnn.model.fitted import Fitted
from varnn.persistence import model_file
from varnn.service import reading
from varnn.service.challenger import needed_inputs
from varnn.service.errors import Closing, Conflict, NotFound
from varnn.service.live_stream import LiveStream, StreamSettings
from varnn.service.roles import Roles, promote, read_roles, write_roles
from varnn.streaming.late import LateLabels
from varnn.streaming.row_store import ANY_WINDOW
from varnn.streaming.stream import Stream

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_MODELS, _MOST_STREAMS, _MOST_CHALLENGERS = 200, 50, 5


class Service:
    """Models by name, and streams that they answer.

    Parameters
    ----------
    folder : str or Path
        Where everything is kept; made if it is not there. One process at a time.
    settings : StreamSettings or None, default=None
        How streams are kept; None for the defaults.
    models : sequence of str or Path, default=()
        Model files to take in before streams are opened, which may need them.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from varnn import VARNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    >>> folder = Path(tempfile.mkdtemp())
    >>> model.save(folder / "first.varnn")
    >>> with Service(folder / "service") as service:
    ...     live = service.serve(folder / "first.varnn")
    ...     [answer] = live.submit([{"x": [0.1, 0.2], "y": 0.3}]).result()
    >>> with Service(folder / "service") as service:
    ...     service.stream("first").n_series
    1
    """

    def __init__(
        self, folder: str | Path, settings: StreamSettings | None = None, models: Sequence[str | Path] = ()
    ) -> None:
        self.folder = Path(folder)
        self.settings = settings or StreamSettings()
        self.started = time.time()
        self._models_at, self._streams_at = self.folder / "models", self.folder / "streams"
        try:
            self._models_at.mkdir(parents=True, exist_ok=True)
            self._streams_at.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"{str(folder)!r} cannot be made: {error.strerror}. Name another --data."
            ) from None
        check_writable(self.folder / "service")
        self._lock = Lock(self.folder / "service", "Give another --data folder.")
        self._changing = RLock()  # of models and roles, which are changed by one at a time
        self._fitted: dict[str, Fitted] = {}
        self._streams: dict[str, LiveStream] = {}
        self.is_open = True
        self.on_commit: Callable[[str, float], None] = lambda stream, seconds: None
        try:
            for place in (self._models_at, self._streams_at):
                for path in place.glob(".*.part"):  # of a process that was ended while it wrote them
                    path.unlink()
            for given in models:
                if not self._model_path(Path(given).stem).exists():
                    self.add_model(Path(given).stem, _read(given))
            for path in sorted(self._streams_at.glob("[!.]*.state")):
                if path.stat().st_size:
                    self._open(path.stem)
                else:  # of a process that was ended before it could write anything
                    path.unlink()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all streams: what waits is answered first, and every state is kept."""
        was_open, self.is_open = self.is_open, False
        with self._changing:
            for live in self._streams.values():
                live.close()
            self._streams = {}
            if was_open:
                self._lock.release()

    # -- models --------------------------------------------------------------------------------------

    def model_names(self) -> list[str]:
        """Names of the models that are here."""
        return sorted(path.stem for path in self._models_at.glob("[!.]*.varnn"))

    def model(self, name: str) -> Fitted:
        """A model by its name."""
        if name not in self._fitted:
            path = self._model_path(name)
            if not path.is_file():
                raise NotFound(f"there is no model {name!r}. There is: {_listed(self.model_names())}.")
            self._fitted[name] = model_file.read(path).fitted
        return self._fitted[name]

    def describe_model(self, name: str) -> dict[str, Any]:
        """What a model is, and where it is used."""
        fitted = self.model(name)
        return {
            "name": name,
            "fingerprint": fitted.fingerprint,
            "inputs": list(fitted.input_names),
            "target": fitted.target_name,
            "intervals": fitted.calibrator is not None,
            "used_by": self._used_by(name),
            "bytes": self._model_path(name).stat().st_size,
        }

    def _used_by(self, name: str) -> list[dict[str, str]]:
        return [
            {"stream": live.name, "role": role}
            for live in self.streams()
            for one, role in self._roles(live)
            if one == name
        ]

    def add_model(self, name: str, blob: bytes) -> dict[str, Any]:
        """Take in a .varnn file under a name: read and checked first, so that what is kept can be used."""
        path = self._model_path(_checked(name, DataError))
        with self._changing:
            if not path.exists() and len(self.model_names()) >= _MOST_MODELS:
                raise Conflict(f"{_MOST_MODELS} models are here, and that is the limit. Delete one first.")
            fitted = model_file.unpacked(blob, f"model {name!r}").fitted
            if path.exists() and self.model(name).fingerprint != fitted.fingerprint:
                raise Conflict(f"there is another model {name!r} already. Choose another name, or delete it.")
            write_atomically(path, blob)
            self._fitted[name] = fitted
            return self.describe_model(name)

    def drop_model(self, name: str) -> None:
        """Delete a model that no stream uses."""
        with self._changing:
            if not self._model_path(name).is_file():
                raise NotFound(f"there is no model {name!r}. There is: {_listed(self.model_names())}.")
            if used := self._used_by(name):
                raise Conflict(f"model {name!r} is the {used[0]['role']} of stream {used[0]['stream']!r}.")
            self._model_path(name).unlink()
            self._fitted.pop(name, None)

    # -- streams -------------------------------------------------------------------------------------

    def streams(self) -> list[LiveStream]:
        """All streams, by name."""
        return [live for _, live in sorted(self._streams.items())]  # in one step, of any thread

    def has_stream(self, name: str) -> bool:
        """Whether there is a stream of that name."""
        return name in self._streams

    def stream(self, name: str) -> LiveStream:
        """A stream by its name."""
        live = self._streams.get(name)
        if live is not None and live.has_ended:
            live = self._again(live)
        if live is None:
            if not self.is_open:
                raise Closing("the service is ending. Try again in some seconds.")
            raise NotFound(f"there is no stream {name[:80]!r}. There is: {_listed(sorted(self._streams))}.")
        return live

    def serve(self, path: str | Path) -> LiveStream:
        """Take in a model file, and go on with the stream of its name, or begin it."""
        path = Path(path)
        name = path.stem
        fitted = model_file.read(path).fitted
        if name in self._streams:
            live = self._streams[name]
            # It may have another champion by now: what counts is that the file is the one it began with.
            if not self._model_path(name).is_file() or self.model(name).fingerprint != fitted.fingerprint:
                raise ConfigError(
                    f"stream {name!r} in {str(self.folder)!r} goes on with another model than {str(path)!r}. "
                    "Upload this one as its challenger, give it another name, or give another --data folder."
                )
            return live
        self.add_model(name, path.read_bytes())
        return self.add_stream(name, name)

    def add_stream(self, name: str, champion: str) -> LiveStream:
        """Begin a stream."""
        with self._changing:
            path = self._state_path(_checked(name, DataError))
            if name in self._streams:
                raise Conflict(f"there is a stream {name!r} already.")
            if len(self._streams) >= _MOST_STREAMS:
                raise Conflict(f"{_MOST_STREAMS} streams are here, and that is the limit. Retire one first.")
            fitted = self.model(champion)
            live = LiveStream(
                name, path, (champion, fitted), settings=self.settings, on_commit=self._commit_of(name)
            )
            self._streams[name] = live
            self._write_roles(live, champion, ())
            return live

    def retire_stream(self, name: str) -> Path:
        """End a stream; its file stays, under another name, which is given back."""
        with self._changing:
            live = self.stream(name)
            del self._streams[name]
            live.close()
            place = live.path.with_name(f"{live.path.name}.retired")
            number = 1
            while place.exists():
                number += 1
                place = live.path.with_name(f"{live.path.name}.retired-{number}")
            # Not by a new name alone: what somebody reads at this moment is kept in two files until then.
            draft = place.with_name(f".{place.name}.part")
            reading.backup(live.path, draft)
            draft.replace(place)
            for end in ("", "-wal", "-shm"):
                live.path.with_name(live.path.name + end).unlink(missing_ok=True)
            return place

    def add_challenger(self, name: str, model: str) -> None:
        """Let a model go along with a stream, from each series' next row on."""
        with self._changing:
            live, fitted = self.stream(name), self.model(model)
            names = [one for one, _ in self._roles(live)]
            if model in names:
                raise Conflict(f"model {model!r} has a part in stream {name!r} already.")
            if len(names) > _MOST_CHALLENGERS:
                raise Conflict(f"a stream has at most {_MOST_CHALLENGERS} challengers.")
            missing = sorted(set(needed_inputs(fitted)) - set(needed_inputs(live.model)))
            if missing or fitted.pipeline.peers:
                raise Conflict(
                    f"model {model!r} needs {'series that are linked' if not missing else _listed(missing)}, "
                    f"which the messages of stream {name!r} do not bring."
                )
            with self._reopened(live) as roles:
                write_roles(live.path, str(roles.champion), (*roles.challengers, model))

    def drop_challenger(self, name: str, model: str) -> None:
        """Let a challenger go, with all that is kept of it."""
        with self._changing:
            live = self.stream(name)
            self._check_challenger(live, model)
            with self._reopened(live) as roles:
                others = tuple(one for one in roles.challengers if one != model)
                write_roles(live.path, str(roles.champion), others)

    def promote(self, name: str, model: str) -> int:
        """Let a challenger and the champion change places; give how many series begin anew with it."""
        with self._changing:
            live, fitted = self.stream(name), self.model(model)
            self._check_challenger(live, model)
            if needed_inputs(fitted) != needed_inputs(live.model):
                raise Conflict(
                    f"model {model!r} does not take the inputs of stream {name!r} in their order "
                    f"({_listed(needed_inputs(live.model))}): lists of them would mean something else."
                )
            anew: list[bytes] = []

            def begun(state: bytes) -> bytes:
                anew.append(_begun(fitted, live.model, state))
                return anew[-1]

            with self._reopened(live):
                promote(live.path, model, fitted.fingerprint, begun)
            return len(anew)

    @contextmanager
    def _reopened(self, live: LiveStream) -> Iterator[Roles]:
        """Close a stream, with all its states on disk, and open it again with the roles it has then."""
        live.call(lambda store: store.checkpoint(), writes=True).result()  # while others can go on
        live.close(with_states=True)
        try:
            yield read_roles(live.path)
        finally:
            self._open(live.name, live)

    def _again(self, live: LiveStream) -> LiveStream:
        """A stream that should be open: where it could not be, once, another try is made."""
        if self.is_open and self._changing.acquire(blocking=False):  # else it is being opened
            try:
                if self._streams.get(live.name) is live:
                    self._open(live.name, live)
            finally:
                self._changing.release()
        return self._streams.get(live.name, live)

    def _open(self, name: str, before: LiveStream | None = None) -> None:
        path = self._state_path(name)
        roles = read_roles(path)
        champion = roles.champion or self._named(roles.fingerprint, path)
        models = {one: self._needed(one, name) for one in (champion, *roles.challengers)}
        if models[champion].fingerprint != roles.fingerprint:
            raise ModelFileError(
                f"stream {name!r} goes on with another model than {str(self._model_path(champion))!r}, which "
                f"was replaced. Put back the file that {str(path)!r} belongs to."
            )
        live = LiveStream(
            name,
            path,
            (champion, models[champion]),
            [(one, models[one]) for one in roles.challengers],
            self.settings,
            self._commit_of(name),
        )
        if before is not None:
            live.take_over(before)
        self._streams[name] = live
        if roles.champion is None:
            self._write_roles(live, champion, ())

    def _needed(self, model: str, stream: str) -> Fitted:
        """A model of a stream, whose file must be there."""
        try:
            return self.model(model)
        except NotFound:
            raise ModelFileError(
                f"stream {stream!r} needs the model {model!r}, and there is no file "
                f"{str(self._model_path(model))!r}. Put it back."
            ) from None

    def _commit_of(self, name: str) -> Callable[[float], None]:
        return lambda seconds: self.on_commit(name, seconds)

    def _write_roles(self, live: LiveStream, champion: str, challengers: tuple[str, ...]) -> None:
        live.call(lambda store: write_roles(live.path, champion, challengers)).result()

    def _named(self, fingerprint: str, path: Path) -> str:
        """Name of the model that a file of ``varnn stream`` belongs to."""
        for name in self.model_names():
            if self.model(name).fingerprint == fingerprint:
                return name
        raise ModelFileError(
            f"{str(path)!r} belongs to a model that is not in {str(self._models_at)!r}. Put it there."
        )

    def _check_challenger(self, live: LiveStream, model: str) -> None:
        if (model, "challenger") not in self._roles(live):
            raise NotFound(f"model {model!r} is no challenger of stream {live.name!r}.")

    @staticmethod
    def _roles(live: LiveStream) -> list[tuple[str, str]]:
        challengers = [(one.name, "challenger") for one in live.keeper.challengers]
        return [(live.champion, "champion"), *challengers]

    def _model_path(self, name: str) -> Path:
        return self._models_at / f"{_checked(name)}.varnn"

    def _state_path(self, name: str) -> Path:
        return self._streams_at / f"{_checked(name)}.state"


def _begun(fitted: Fitted, before: Fitted, state: bytes) -> bytes:
    """State of a model that begins with a series after the rows that another one had, as its state says."""
    late = LateLabels.restore(before, state, ANY_WINDOW)
    live = Stream(fitted)
    live.steps, live.last_time = late.row, late.live.last_time
    if late.open_row is not None:
        x, time = late.live.open_inputs
        try:
            if list(fitted.input_names) != list(before.input_names):
                raise DataError("other categories make other inputs")
            live.predict(x, time=time)
        except DataError:  # then its label comes too late
            live.steps += 1
            live.last_time = live.last_time if time is None else time
    return LateLabels(live, 0).snapshot()


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read: {error.strerror}.") from None


def _checked(name: str, wrong: type[VarnnError] = NotFound) -> str:
    if not NAME.fullmatch(name):
        raise wrong(
            f"names have letters, digits, '-', '_' and '.', begin with a letter or digit, and have at "
            f"most 64 of them; got {name[:80]!r}."
        )
    return name


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:10])) or "none"
