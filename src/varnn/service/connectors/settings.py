"""What the connectors are told: as records, and as the one text of a command's option."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from varnn.data.rules import shown
from varnn.errors import ConfigError, check_choice, nearest

_PORT, _PORT_OF_TLS = 1883, 8883
_SWITCH = {"yes": True, "no": False}
PRECISIONS = ("ns", "us", "ms", "s")


@dataclass(frozen=True, kw_only=True)
class MqttSettings:
    """Where the broker is, and under which topics to speak.

    Parameters
    ----------
    host : str, default="localhost"
        The broker's.
    port : int or None, default=None
        Its port; None is 1883, with TLS 8883.
    username : str or None, default=None
        Whom the broker knows this service as.
    password_file : Path or None, default=None
        File whose first line is the password.
    tls : bool, default=False
        Whether to speak TLS.
    ca_file : Path or None, default=None
        Certificates that vouch for the broker; None for those of the system.
    prefix : str, default="varnn"
        First level or levels of every topic. Two services on one broker need two.
    discovery : bool, default=True
        Whether to announce series to Home Assistant.
    discovery_prefix : str, default="homeassistant"
        Where that listens.
    client_id : str, default="varnn"
        Name of the session that the broker keeps while the service is away. Two services on one broker need
        two.

    Examples
    --------
    >>> MqttSettings.from_url("mqtts://meter@broker.lan/cellar?discovery=no").port_or_default
    8883
    """

    host: str = "localhost"
    port: int | None = None
    username: str | None = None
    password_file: Path | None = None
    tls: bool = False
    ca_file: Path | None = None
    prefix: str = "varnn"
    discovery: bool = True
    discovery_prefix: str = "homeassistant"
    client_id: str = "varnn"

    def __post_init__(self) -> None:
        if not self.host or not self.client_id:
            raise ConfigError("the broker must have a host, and the session a client_id; got an empty one.")
        if self.port is not None and not 0 < self.port < 65536:
            raise ConfigError(f"the broker's port must be between 1 and 65535; got {self.port}.")
        if self.password_file is not None and self.username is None:
            raise ConfigError("a password is that of a user: name one, as in mqtt://user@host.")
        for name, topic in (("prefix", self.prefix), ("discovery_prefix", self.discovery_prefix)):
            if not all(topic.split("/")) or set(topic) & set("+#\0") or topic.startswith("$"):
                raise ConfigError(
                    f"{name} must be levels of a topic, with no + or #, no empty one, and no $ at its "
                    f"beginning; got {shown(topic)}."
                )

    @property
    def port_or_default(self) -> int:
        """The port that is spoken to."""
        return self.port or (_PORT_OF_TLS if self.tls else _PORT)

    def password(self) -> str | None:
        """Read the password, None where there is no file."""
        if self.password_file is None:
            return None
        try:
            text = self.password_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the broker's password cannot be read from its file: {error}") from None
        return text.partition("\n")[0].rstrip("\r")

    @classmethod
    def from_url(cls, url: str, password_file: str | Path | None = None) -> "MqttSettings":
        """Read ``mqtt://user@host:port/prefix?name=value``; ``mqtts`` is with TLS.

        Parameters
        ----------
        url : str
            After the question mark come ``discovery`` (yes or no), ``discovery_prefix``, ``client_id`` and
            ``ca_file``, joined by ``&``. There is no place for a password in it: others see the options of a
            process.
        password_file : str or Path or None, default=None
            File whose first line is the password.

        Returns
        -------
        MqttSettings
            The same.

        Examples
        --------
        >>> settings = MqttSettings.from_url("mqtt://localhost?client_id=cellar&discovery=no")
        >>> settings.client_id, settings.discovery, settings.prefix
        ('cellar', False, 'varnn')
        """
        parts = urlsplit(url if "://" in url else f"mqtt://{url}")
        check_choice("the scheme of the broker's address", parts.scheme, ["mqtt", "mqtts"])
        if parts.password is not None:
            raise ConfigError(
                "a broker's address must not have the password in it, which others on this machine would "
                "see. Put it into a file, and name that with --mqtt-password-file."
            )
        try:
            port = parts.port
        except ValueError:
            raise ConfigError(f"the broker's port must be between 1 and 65535; got {shown(url)}.") from None
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        _check_names(given, ["discovery", "discovery_prefix", "client_id", "ca_file"])
        settings: dict[str, Any] = {
            name: given[name] for name in ("discovery_prefix", "client_id") if name in given
        }
        return cls(
            host=parts.hostname or "localhost",
            port=port,
            username=unquote(parts.username) if parts.username else None,
            password_file=None if password_file is None else Path(password_file),
            tls=parts.scheme == "mqtts",
            ca_file=Path(given["ca_file"]) if "ca_file" in given else None,
            prefix=unquote(parts.path.strip("/")) or "varnn",
            discovery=_switch("discovery", given.get("discovery", "yes")),
            **settings,
        )


@dataclass(frozen=True, kw_only=True)
class InfluxSettings:
    """Which lines are rows, and what of them is what.

    Parameters
    ----------
    measurement : str
        Lines of this measurement are rows; others are none of ours.
    target : str or None, default=None
        Field that is the label; None for the one named as the model's target.
    series : tuple of str or None, default=None
        Tags that name the series; None for all there are.
    precision : str, default="ns"
        Unit of times: ns, us, ms or s.
    stream : str or None, default=None
        Stream that the rows go to; None where there is one.
    echo : bool, default=True
        Whether lines come out again as they came in, before what is said of them: Telegraf forgets a metric
        that a processor does not give back.

    Examples
    --------
    >>> InfluxSettings.from_text("measurement=power,target=load,series=house+room").series
    ('house', 'room')
    """

    measurement: str
    target: str | None = None
    series: tuple[str, ...] | None = None
    precision: str = "ns"
    stream: str | None = None
    echo: bool = True

    def __post_init__(self) -> None:
        if not self.measurement or self.series == () or "" in (self.target, *(self.series or ())):
            raise ConfigError("measurement, target and series must have names; got an empty one.")
        check_choice("precision", self.precision, PRECISIONS)

    @classmethod
    def from_text(cls, text: str) -> "InfluxSettings":
        """Read ``name=value,name=value``; names of tags are joined by ``+``.

        Parameters
        ----------
        text : str
            ``measurement``, and any of ``target``, ``series``, ``precision``, ``stream`` and ``echo`` (yes or
            no). A comma within a name is written ``%2C``, a plus ``%2B``, and ``%`` itself ``%25``.

        Returns
        -------
        InfluxSettings
            The same.

        Examples
        --------
        >>> InfluxSettings.from_text("measurement=power,echo=no").echo
        False
        >>> InfluxSettings.from_text("target=load")
        Traceback (most recent call last):
        ...
        varnn.errors.ConfigError: --influx must name the measurement whose lines are rows: measurement=NAME.
        """
        given: dict[str, str] = {}
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if not equals or name in given:
                raise ConfigError(f"--influx must be name=value,name=value, each once; got {shown(text)}.")
            given[name] = value
        _check_names(given, ["measurement", "target", "series", "precision", "stream", "echo"])
        if "measurement" not in given:
            raise ConfigError("--influx must name the measurement whose lines are rows: measurement=NAME.")
        return cls(
            measurement=unquote(given["measurement"]),
            target=unquote(given["target"]) if "target" in given else None,
            series=tuple(map(unquote, given["series"].split("+"))) if "series" in given else None,
            precision=given.get("precision", "ns"),
            stream=given.get("stream"),
            echo=_switch("echo", given.get("echo", "yes")),
        )


def _check_names(given: Mapping[str, str], known: list[str]) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(f"a connector has no setting {shown(name)}. {nearest(name, known)}")


def _switch(name: str, value: str) -> bool:
    check_choice(name, value, list(_SWITCH))
    return _SWITCH[value]
