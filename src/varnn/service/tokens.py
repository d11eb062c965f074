"""Tokens of callers: made once and shown once, kept as hashes in one file, revoked while a service runs.

A token reads ``varnn_<id>_<secret>``. The id finds its entry; of the secret, 32 random bytes, the file holds
the SHA-256 alone. A slow hash would add nothing: nobody guesses 256 random bits. Entries stay when they are
revoked, so that a file whose tokens are all revoked is never taken for one that has none.
"""

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from varnn.data.files import check_writable, opened_atomically
from varnn.data.locks import Lock
from varnn.errors import ConfigError, DataError, OutputError, check_choice, nearest

SCOPES = ("read", "write", "admin")  # each holds those before it
_DAY = 86_400
_TRIES, _PAUSE = 100, 0.05  # to change a file that another process is changing
_MOST_DAYS = 36_500
_VERSION = 1
_ID = re.compile(r"[0-9a-f]{12}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[\w.@+-][\w .@+-]{0,62}")
_NOBODY = "0" * 64  # compared with where no entry has the id, so that both cases do the same work


@dataclass(frozen=True)
class Token:
    """What is known of a token: all but its secret. Times are seconds since 1970.

    Examples
    --------
    >>> one = Token(id="0123456789ab", name="heat pump", scope="write", sha256="", made=0.0, expires=60.0)
    >>> one.status(now=59.0), one.status(now=60.0)
    ('active', 'expired')
    """

    id: str
    name: str
    scope: str
    sha256: str
    made: float
    expires: float | None = None
    revoked: float | None = None

    def status(self, now: float) -> str:
        """Say "active", "expired" or "revoked"."""
        if self.revoked is not None:
            return "revoked"
        return "active" if self.expires is None or now < self.expires else "expired"


class Tokens:
    """The tokens of one file, which is read anew whenever it has changed.

    Parameters
    ----------
    path : str or Path
        The file; it need not be there yet.
    clock : callable, default=time.time
        Gives the seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> tokens = Tokens(Path(tempfile.mkdtemp()) / "tokens.json")
    >>> tokens.exist
    False
    >>> text = tokens.make("heat pump", "write", days=90)
    >>> tokens.scope_of(text), tokens.exist
    ('write', True)
    >>> tokens.revoke("heat pump").name
    'heat pump'
    >>> print(tokens.scope_of(text), tokens.exist)
    None True
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._clock = clock
        self._by_id: dict[str, Token] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._were_there = False
        self._known()

    @property
    def exist(self) -> bool:
        """Whether any were ever made, revoked ones too; once seen, a file that is gone changes nothing."""
        return self._were_there or bool(self._known())

    def list(self) -> tuple[Token, ...]:
        """Every token, those that are of no use any more too, the oldest first."""
        return tuple(self._known().values())

    def scope_of(self, text: str) -> str | None:
        """What a token allows: read, write or admin; None for one that is wrong, revoked or expired."""
        one = self.find(text)
        return None if one is None else one.scope

    def find(self, text: str) -> Token | None:
        """The entry of a token, unless it is wrong, revoked or expired."""
        mark, _, rest = text.partition("_")
        name, _, secret = rest.partition("_")
        one = self._known().get(name)
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
        same = hmac.compare_digest(digest, _NOBODY if one is None else one.sha256)
        if one is None or not same or mark != "varnn":
            return None
        return one if one.status(self._clock()) == "active" else None

    def active(self, token_id: str) -> Token | None:
        """The entry of an id, unless it is revoked or expired."""
        one = self._known().get(token_id)
        return one if one is not None and one.status(self._clock()) == "active" else None

    def make(self, name: str, scope: str, days: float | None = None) -> str:
        """Make a token and give its text, which is nowhere kept.

        Parameters
        ----------
        name : str
            What to call it; no other active token may have the name.
        scope : {"read", "write", "admin"}
            What it allows.
        days : float or None, default=None
            For how long; None is until it is revoked.
        """
        check_choice("scope", scope, SCOPES)
        if not _NAME.fullmatch(name) or name != name.strip():
            raise ConfigError(
                "the name of a token must have 1 to 63 letters, digits, spaces or any of . @ + - _, and no "
                f"space at its ends; got {name!r}. Choose another."
            )
        if days is not None and not 0 < days <= _MOST_DAYS:
            raise ConfigError(f"days must be more than 0 and at most {_MOST_DAYS:,}; got {days}.")
        with self._changing() as entries:
            now = self._clock()
            taken = next((one for one in entries if one.name == name and one.status(now) == "active"), None)
            if taken is not None:
                raise ConfigError(
                    f"each token needs a name of its own; {name!r} is that of {taken.id}. Revoke it, or "
                    "choose another name."
                )
            secret, made = secrets.token_urlsafe(32), float(int(now))
            one = Token(
                id=secrets.token_hex(6),
                name=name,
                scope=scope,
                sha256=hashlib.sha256(secret.encode()).hexdigest(),
                made=made,
                expires=None if days is None else made + days * _DAY,
            )
            entries.append(one)
        return f"varnn_{one.id}_{secret}"

    def revoke(self, name_or_id: str) -> Token:
        """Make a token useless, by its name or its id, and give its entry."""
        with self._changing() as entries:
            left = {place: one for place, one in enumerate(entries) if one.revoked is None}
            # Of one name there may be expired ones, whose name was given again: the last is meant.
            found = [place for place, one in left.items() if name_or_id in (one.id, one.name)]
            if not found:
                known = [one.name for one in left.values()]
                hint = nearest(name_or_id, known) if known else "There are none."
                raise ConfigError(f"no token is called {name_or_id!r} that could be revoked. {hint}")
            entry = asdict(entries[found[-1]]) | {"revoked": float(int(self._clock()))}
            entries[found[-1]] = Token(**entry)
        return entries[found[-1]]

    def _known(self) -> dict[str, Token]:
        """Give all entries by id, as they are in the file now; the file has to be sound, or it is an error.

        A file that is gone lets nobody in: not those of before, as it may be gone for that very reason, and
        not everybody, as tokens have been made.
        """
        try:
            status = os.stat(self.path)  # noqa: PTH116 - in every request, and twice as fast as Path.stat
        except FileNotFoundError:
            self._by_id, self._stamp = {}, None
            return self._by_id
        except OSError as error:
            raise self._damage(error.strerror or str(error)) from None
        # The inode, too: a file that is replaced twice within a tick of the clock is another file each time.
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp != self._stamp:
            self._by_id = {one.id: one for one in self._read()}
            self._stamp = stamp
            self._were_there = self._were_there or bool(self._by_id)
        return self._by_id

    def _read(self) -> Iterator[Token]:
        try:
            content = json.loads(self.path.read_bytes())
        except OSError as error:
            raise self._damage(error.strerror or str(error)) from None
        except (ValueError, RecursionError):
            raise self._damage("it is no JSON") from None
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            raise self._damage(f"it is not of version {_VERSION}")
        entries = content.get("tokens")
        if not isinstance(entries, list):
            raise self._damage("it has no list of tokens")
        seen: set[str] = set()
        for place, entry in enumerate(entries):
            one = _checked(entry)
            if one is None or one.id in seen:
                raise self._damage(f"entry {place} of it is no token")
            seen.add(one.id)
            yield one

    def _damage(self, reason: str) -> DataError:
        return DataError(
            f"the file of tokens {str(self.path)!r} must be readable and whole: {reason}. Until it is, "
            "nobody is let in. Bring back a copy, or delete it and make new tokens (varnn token make)."
        )

    @contextlib.contextmanager
    def _changing(self) -> Iterator[MutableSequence[Token]]:
        """Give the entries to change, and write them where nothing went wrong; one process at a time."""
        lock = _locked(self.path)
        try:
            entries = list(self._read()) if self.path.exists() else []
            yield entries
            content = {"version": _VERSION, "tokens": [_written(one) for one in entries]}
            with opened_atomically(self.path) as file:
                os.chmod(file.name, 0o600)  # noqa: PTH101 - before the first byte
                file.write(json.dumps(content, indent=1).encode() + b"\n")
        finally:
            lock.release()
        self._known()


def _written(one: Token) -> dict[str, Any]:
    times = {name: getattr(one, name) for name in ("made", "expires", "revoked")}
    return asdict(one) | {name: None if at is None else utc(at) for name, at in times.items()}


def _checked(entry: Any) -> Token | None:
    """Give the token of an entry, or None where it is none."""
    if not isinstance(entry, dict) or entry.keys() != Token.__dataclass_fields__.keys():
        return None
    texts = [entry[name] for name in ("id", "name", "scope", "sha256", "made")]
    if not all(isinstance(one, str) for one in texts):
        return None
    if (
        not _ID.fullmatch(entry["id"])
        or not _SHA256.fullmatch(entry["sha256"])
        or entry["scope"] not in SCOPES
    ):
        return None
    try:
        times = {name: _seconds(entry[name]) for name in ("made", "expires", "revoked")}
    except (TypeError, ValueError):
        return None
    return Token(**(entry | times))


def utc(seconds: float) -> str:
    """Write seconds since 1970 as a time.

    Examples
    --------
    >>> utc(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return at.timestamp()


def _locked(path: Path) -> Lock:
    """Wait until no other process changes the file: of two at once, one would undo what the other revoked."""
    check_writable(path)
    for _ in range(_TRIES):
        with contextlib.suppress(OutputError):
            return Lock(path, "Try again.")
        time.sleep(_PAUSE)
    return Lock(path, "Try again.")
