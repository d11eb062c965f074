"""A series as a device of Home Assistant: what its MQTT discovery is told, once, in retained messages.

Sensors hear the answers themselves (``.../prediction``) and take their value out of them by a template. An
answer that has no such value, as one to a label has no prediction, leaves a sensor as it was: it makes an
empty text, which Home Assistant passes over. The alarm is on with the label at which a change was noticed,
and off with the next one.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from varnn._version import VERSION

_SENSORS = ("prediction", "lower", "upper", "innovation")


def announcements(
    answer: Mapping[str, Any], *, state: str, availability: str, prefix: str, stream: str, series: str | None
) -> dict[str, dict[str, Any]]:
    """Topics to publish to, and what: one for each thing there is to see of a series.

    Parameters
    ----------
    answer : mapping
        Answer to a row of the series: bounds are announced where the model gives them.
    state : str
        Topic of the answers.
    availability : str
        Topic that says whether the service is there.
    prefix : str
        Where Home Assistant listens.
    stream, series : str, str or None
        Names, for people.

    Returns
    -------
    dict from str to dict
        What to publish, retained, by topic. Identifiers are made of the topic of the answers: the same each
        time, and never those of another series.

    Examples
    --------
    >>> said = announcements({"prediction": 1.5}, state="varnn/house/a/prediction",
    ...     availability="varnn/status", prefix="homeassistant", stream="house", series="a")
    >>> [topic.rpartition("_")[2] for topic in said]
    ['93a53aa11c93/prediction/config', '93a53aa11c93/innovation/config', '93a53aa11c93/alarm/config']
    """
    identifier = f"varnn_{blake2b(state.encode(), digest_size=6).hexdigest()}"
    shared = {
        "state_topic": state,
        "availability_topic": availability,
        "qos": 1,
        "device": {
            "identifiers": [identifier],
            "name": stream if series is None else f"{stream} {series}",
            "manufacturer": "varnn",
            "model": f"stream {stream}",
            "sw_version": VERSION,
        },
        "origin": {"name": "varnn", "sw_version": VERSION},
    }
    said = {}
    for one in _SENSORS:
        if one in answer or one == "innovation":  # an error, which comes with the label
            said[f"{prefix}/sensor/{identifier}/{one}/config"] = shared | {
                "name": one.capitalize(),
                "unique_id": f"{identifier}_{one}",
                "value_template": f"{{{{ value_json.{one} if value_json.{one} is defined else '' }}}}",
                "state_class": "measurement",
            }
    said[f"{prefix}/binary_sensor/{identifier}/alarm/config"] = shared | {
        "name": "Alarm",
        "unique_id": f"{identifier}_alarm",
        "value_template": "{% if value_json.events is defined and value_json.events %}ON"
        "{% elif value_json.innovation is defined %}OFF{% endif %}",
        "device_class": "problem",
    }
    return said
