"""What messages and answers are made of, as OpenAPI has it; tests hold the answers to it."""

from typing import Any

from varnn.streaming.messages import LONGEST_NAME

Schema = dict[str, Any]

_NUMBER: Schema = {"type": ["number", "null"]}
_NUMBERS: Schema = {"type": "array", "items": _NUMBER}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_NAME: Schema = {"type": ["string", "integer", "null"], "maxLength": LONGEST_NAME}


def ref(name: str) -> Schema:
    """A schema by its name.

    Examples
    --------
    >>> ref("Score")
    {'$ref': '#/components/schemas/Score'}
    """
    return {"$ref": f"#/components/schemas/{name}"}


def many(schema: Schema) -> Schema:
    """A list of such values."""
    return {"type": "array", "items": schema}


def told(schema: Schema, words: str) -> Schema:
    """The same schema, described."""
    return {**schema, "description": words}


def _object(words: str, optional: str = "", **properties: Schema) -> Schema:
    """An object that has all of these but the optional ones, which are named in one text."""
    required = [name for name in properties if name not in optional.split()]
    return {"type": "object", "description": words, "properties": properties, "required": required}


def _by_name(schema: Schema, words: str) -> Schema:
    return {"type": "object", "additionalProperties": schema, "description": words}


_INPUTS: Schema = {
    "description": "inputs by name, or as a list in the model's order; null where one is missing",
    "oneOf": [
        {"type": "object", "additionalProperties": {"type": ["number", "string", "null"]}},
        {"type": "array", "items": _NUMBER},
    ],
}
_LEVELS: Schema = {
    "description": "level, or levels, of intervals to give; without it that of the stream",
    "oneOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": 0.99},
        {
            "type": "array",
            "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.99},
            "maxItems": 20,
        },
    ],
}
_FIELDS: dict[str, Schema] = {
    "series": told(_NAME, "which series; without it the one that has no name"),
    "x": _INPUTS,
    "time": told(
        {"type": ["string", "null"]},
        "of x, ISO 8601; without a zone it is UTC. Beside y alone: the time of the row it is the label of",
    ),
    "interval": _LEVELS,
    "y": told(_NUMBER, "label: beside x that of its row, alone that of the open row; null: missing"),
    "last_y": told(_NUMBER, "beside x: label of the row before, which is open"),
    "row": told(_COUNT, "beside y alone: the row it is the label of"),
    "for": told({"type": ["string", "integer"]}, "the same by the key, or seq, of its x"),
    "key": told(
        {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
        "of the sender's own: sent again, the message is answered as it was and changes nothing",
    ),
    "seq": told(
        {"type": "integer", "minimum": 1}, "number of the message in its series, from 1, to the same end"
    ),
}


def _message(words: str, needed: str, *fields: str) -> Schema:
    properties = {name: _FIELDS[name] for name in fields}
    return {"type": "object", "description": words, "properties": properties, "required": [needed]}


SCHEMAS: dict[str, Schema] = {
    "Error": _object(
        "What is wrong, and what to do.",
        error=_TEXT,
        request=told({"type": ["string", "null"]}, "id of the request, which the log has"),
    ),
    "Row": _message("A row to predict.", "x", "series", "x", "time", "interval"),
    "Observation": _message("A label.", "y", *(name for name in _FIELDS if name != "last_y")),
    "Step": _message(
        "The next row, and maybe the label of the one before.",
        "x",
        *(name for name in _FIELDS if name not in ("row", "for")),
    ),
    "Answer": _object(
        "What came of a message, as far as it applies.",
        "series seq row prediction lower upper innovation events error next damaged",
        series=told(_NAME, "as the message had it; left out where it has no name"),
        seq=told(_COUNT, "number of the message in its series"),
        row=told(_COUNT, "number of the row in its series, from 0"),
        prediction=_NUMBER,
        lower={"oneOf": [_NUMBER, _NUMBERS], "description": "of the interval, or of each that was asked for"},
        upper={"oneOf": [_NUMBER, _NUMBERS]},
        innovation=told(_NUMBER, "label less prediction; null where the label is missing"),
        events=told(many(ref("Noticed")), "what the monitor noticed by this label"),
        error=told(_TEXT, "why this message was refused; it has changed nothing"),
        next=told(_COUNT, "of a wrong seq: the one that is due"),
        damaged=told({"type": "boolean"}, "true where what is on disk is at fault, and not the message"),
    ),
    "Noticed": _object(
        "Something that the monitor noticed.",
        kind=told(_TEXT, "such as shift, variance or coverage"),
        row=told(_COUNT, "row at which it was noticed"),
        began=told({"type": "integer"}, "row at which it began, about"),
        size=_NUMBER,
    ),
    "Event": _object(
        "The same with its series and its time.",
        id=_COUNT,
        series=_NAME,
        row=_COUNT,
        at=told(_NUMBER, "seconds since 1970"),
        kind=_TEXT,
        began={"type": "integer"},
        size=_NUMBER,
    ),
    "Score": _object(
        "Errors, exponentially weighted with a memory of 500 rows, beside those of persistence.",
        rows=told(_COUNT, "labels that came"),
        rmse=_NUMBER,
        mae=_NUMBER,
        persistence_rmse=_NUMBER,
        skill=told(_NUMBER, "1 - mse / mse of persistence; over several series that of the middle one"),
        coverage=told(_NUMBER, "share of labels within their intervals"),
        innovation_scale=_NUMBER,
        width=told(_NUMBER, "of the intervals, on average"),
    ),
    "Stream": _object(
        "A stream: one journal, one champion, its challengers, many series.",
        "scores series_begun_anew",
        name=_TEXT,
        champion=told(_TEXT, "model that answers"),
        challengers=told(_TEXTS, "models that go along"),
        series=_COUNT,
        rows=_COUNT,
        level=told(_NUMBER, "of the intervals that are always given; null where the model has none"),
        inputs=_TEXTS,
        target=_TEXT,
        needs_time=told({"type": "boolean"}, "whether each row must come with its time"),
        late=told(_COUNT, "rows that a label may come late"),
        series_begun_anew=told(_COUNT, "which the model had not joined; only after a promotion"),
        scores=_by_name(ref("Score"), "of each model over all series; only where one stream is asked for"),
    ),
    "Summary": _object(
        "One series as of now.",
        "spark weights waiting scores",
        series=_NAME,
        rows=_COUNT,
        at=told(_NUMBER, "time of its last row, in seconds since 1970"),
        y=told(_NUMBER, "its last label"),
        prediction=_NUMBER,
        lower=_NUMBER,
        upper=_NUMBER,
        score=ref("Score"),
        alarms=told(_COUNT, "events in its last 1000 rows"),
        last_event={"oneOf": [{"type": "null"}, {"type": "object"}]},
        trouble=told({"type": "number"}, "how much it asks to be looked at, from 0"),
        spark=told(_NUMBERS, "its last labels, where asked for"),
        weights=_by_name(_NUMBER, "of its experts; only where one series is asked for"),
        waiting=told(many(_COUNT), "rows that wait for their labels; likewise"),
        scores=_by_name(ref("Score"), "of each model; likewise"),
    ),
    "SeriesList": _object(
        "Some of the series.",
        total=told(_COUNT, "series that were found"),
        series=many(ref("Summary")),
    ),
    "History": _object(
        "Rows of a series, thinned where there are many; no peak is lost.",
        columns=_object(
            "One list for each column, all of one length.",
            row=many(_COUNT),
            at=told(_NUMBERS, "seconds since 1970: the row's time, else when it came"),
            time=many({"type": ["string", "null"]}),
            y=_NUMBERS,
            prediction=_NUMBERS,
            lower=_NUMBERS,
            upper=_NUMBERS,
        ),
        challengers=_by_name(_object("Of one challenger.", prediction=_NUMBERS), "predictions of each"),
        rows=told(_COUNT, "rows in the range"),
        thinned=told({"type": "boolean"}, "whether some were left out"),
    ),
    "Model": _object(
        "A model that was uploaded; of one whose file is damaged, its name and what is wrong.",
        "fingerprint inputs target intervals used_by bytes error",
        name=_TEXT,
        fingerprint=_TEXT,
        inputs=_TEXTS,
        target=_TEXT,
        intervals={"type": "boolean"},
        used_by=many(_object("A part it has.", stream=_TEXT, role={"enum": ["champion", "challenger"]})),
        bytes=_COUNT,
        error=told(_TEXT, "what is wrong with its file"),
    ),
    "Health": _object(
        "How the service is.",
        version=_TEXT,
        uptime_seconds={"type": "number"},
        disk_free_bytes=_COUNT,
        streams=many(
            _object(
                "One stream.",
                name=_TEXT,
                queue=told(_COUNT, "messages that wait"),
                queue_limit=_COUNT,
                series=_COUNT,
                observations=_COUNT,
                predictions=_COUNT,
                refused=_COUNT,
                events=_COUNT,
                commits=_COUNT,
                commit_ms=told({"type": "number"}, "of a transaction, on average"),
                slowest_commit_ms={"type": "number"},
                file_bytes=_COUNT,
                trouble=told({"type": ["string", "null"]}, "why it cannot write, or what is damaged"),
            )
        ),
    ),
    "Session": _object(
        "Who is asking.",
        scope={"enum": ["read", "write", "admin"]},
        csrf=told({"type": ["string", "null"]}, "word of the session for the header X-CSRF-Token"),
    ),
    "Retired": _object("A stream that ended.", retired=_TEXT, file=told(_TEXT, "its state file now")),
    "Forgotten": _object("A series that is gone.", forgotten=_NAME),
    "Placed": _object("A series that was given a state.", series=_NAME, bytes=_COUNT),
    "Deleted": _object("A model that is gone.", deleted=_TEXT),
}
