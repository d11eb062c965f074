"""The routes of series: what a path or a query can ask of them, and their answers."""

import asyncio
import json
import math
from collections.abc import Callable
from itertools import chain
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from varnn.data.timestamps import seconds_since_1970, timestamp
from varnn.errors import ConfigError, DataError
from varnn.service import reading
from varnn.service.errors import NotFound
from varnn.service.http.bodies import Parts, json_response, stream_of
from varnn.service.http.following import followed
from varnn.service.live_stream import LiveStream
from varnn.service.summary import Summary
from varnn.streaming.late import LateLabels
from varnn.streaming.messages import LONGEST_NAME

_MOST_LISTED, _MOST_POINTS, _MOST_SPARK = 500, 20_000, 500
_SORTS: dict[str, Callable[[Any, float | None], Any]] = {
    "trouble": lambda one, level: (-one.trouble(level), one.name),
    "name": lambda one, level: _in_order(json.loads(one.name)),
    "recent": lambda one, level: (-one.at if one.at == one.at else math.inf, one.name),
}


def _in_order(name: str | int | None) -> tuple[bool, bool, int, str]:
    """What names are sorted by: texts as people do, then numbers, then the series without one."""
    is_text = isinstance(name, str)
    return not is_text, name is None, 0 if is_text or name is None else int(name), str(name).casefold()


def _names(text: str) -> list[str]:
    """Names, as JSON, that a text in a path or a query can stand for."""
    if text == "~":
        return ["null"]
    names = [json.dumps(text)]
    if text.removeprefix("-").isdecimal() and len(text) <= LONGEST_NAME:
        names.append(str(int(text)))
    return names


def _series(request: Request, live: LiveStream) -> tuple[str, int]:
    """Name, as JSON, and number of the series in a path."""
    return _numbered(live, request.path_params["series"])


def _numbered(live: LiveStream, text: str) -> tuple[str, int]:
    for name in _names(text):
        if name in live.keeper.ids:
            return name, live.keeper.ids[name]
    raise NotFound(f"stream {live.name!r} has no series {text[:200]!r}.")


async def list_series(request: Request) -> Response:
    """Series with their last values, scores and troubles."""
    live, query = stream_of(request), request.query_params
    limit = _whole(query.get("limit", "50"), "limit", 1, _MOST_LISTED)
    offset = _whole(query.get("offset", "0"), "offset", 0, 10**9)
    spark = _whole(query.get("spark", "0"), "spark", 0, _MOST_SPARK)
    sort = query.get("sort", "trouble")
    if sort not in _SORTS:
        raise DataError(f"sort must be one of {', '.join(_SORTS)}; got {sort[:50]!r}.")
    search = query.get("search", "").lower()
    return json_response(await asyncio.to_thread(_listed, live, search, sort, limit, offset, spark))


def _listed(live: LiveStream, search: str, sort: str, limit: int, offset: int, spark: int) -> dict[str, Any]:
    found = [
        (number, one)
        for number, one in list(live.keeper.summaries.items())
        if not search or search in str(json.loads(one.name)).lower()
    ]
    found.sort(key=lambda pair: _SORTS[sort](pair[1], live.level))
    page = found[offset : offset + limit]
    told = [one.told(live.level) for _, one in page]
    if spark:
        lines = reading.sparks(live.path, [number for number, _ in page], spark)
        for one, (number, _) in zip(told, page, strict=True):
            one["spark"] = lines[number]
    return {"total": len(found), "series": told}


async def one_series(request: Request) -> Response:
    """One series, with the weights of its experts."""
    live = stream_of(request)
    name, number = _series(request, live)
    told = live.keeper.summaries.get(number, Summary(name)).told(live.level)
    told["weights"], told["waiting"] = await asyncio.wrap_future(
        live.call(lambda store: _inside(store.stream(name)))
    )
    scores = {live.champion: told["score"]}
    for one in live.keeper.challengers:
        if number in one.scores:
            scores[one.name] = one.scores[number].told()
    return json_response(told | {"scores": scores})


def _inside(late: LateLabels | None) -> tuple[dict[str, float], list[int]]:
    if late is None:
        return {}, []
    try:
        weights = late.live.weights
    except ConfigError:  # a model without experts has no weights
        weights = {}
    return weights, late.waiting


async def forget_series(request: Request) -> Response:
    """Forget a series."""
    live = stream_of(request)
    name, _ = _series(request, live)
    await asyncio.wrap_future(live.call(lambda store: store.forget(name), writes=True))
    live.mended(name)
    return json_response({"forgotten": json.loads(name)})


async def history(request: Request) -> Response:
    """Rows of a series by time."""
    live, query = stream_of(request), request.query_params
    _, number = _series(request, live)
    span = {"start": _seconds(query.get("from"), "from"), "end": _seconds(query.get("to"), "to")}
    form = query.get("format", "json")
    if form == "csv":
        lines = reading.history_csv(live.path, number, **span)
        headers = {"Content-Disposition": f'attachment; filename="{live.name}-{number}.csv"'}
        first = await asyncio.to_thread(next, lines)  # what cannot be read is an error, and not half a file
        return Parts(
            chain([first], lines), lines.close, media_type="text/csv; charset=utf-8", headers=headers
        )
    if form != "json":
        raise DataError(f"format must be json or csv; got {form[:50]!r}.")
    points = _whole(query.get("points", "2000"), "points", 10, _MOST_POINTS)
    return json_response(await asyncio.to_thread(reading.history, live.path, number, **span, points=points))


async def events(request: Request) -> Response:
    """Events of the monitor."""
    live, query = stream_of(request), request.query_params
    series = None if query.get("series") is None else _numbered(live, query["series"])[1]
    limit = _whole(query.get("limit", "100"), "limit", 1, 1000)
    found = await asyncio.to_thread(reading.events, live.path, series=series, limit=limit)
    return json_response([{"series": json.loads(one.pop("name")), **one} for one in found])


async def snapshot(request: Request) -> Response:
    """State of a series as bytes."""
    live = stream_of(request)
    name, _ = _series(request, live)
    blob = await asyncio.wrap_future(live.call(lambda store: _packed(store.stream(name))))
    if blob is None:
        raise NotFound(f"stream {live.name!r} has no series {name}.")
    return Response(blob, media_type="application/octet-stream")


def _packed(late: LateLabels | None) -> bytes | None:
    return None if late is None else late.snapshot()


async def put_snapshot(request: Request) -> Response:
    """Let a series go on from bytes."""
    live, blob = stream_of(request), await request.body()
    text = request.path_params["series"]
    known = [name for name in _names(text) if name in live.keeper.ids]
    name = known[0] if known else _names(text)[0]
    if len(text) > LONGEST_NAME:
        raise DataError(f"a series' name has at most {LONGEST_NAME} characters; got {len(text)}.")
    await asyncio.wrap_future(live.call(lambda store: store.put(name, blob), writes=True))
    live.mended(name)
    return json_response({"series": json.loads(name), "bytes": len(blob)})


async def live_events(request: Request) -> Response:
    """Rows and events as they come."""
    live = stream_of(request)
    wanted = {name for text in request.query_params.getlist("series") for name in _names(text)}
    return await followed(request, live, wanted)


def _whole(text: str, name: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise DataError(f"{name} must be a whole number from {least} to {most}; got {text[:50]!r}.")
    return value


def _seconds(text: str | None, name: str) -> float | None:
    """A time in a query, as seconds since 1970."""
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return _time(text)
    if not math.isfinite(value):
        raise DataError(f"{name} must be a time, or seconds since 1970; got {text[:50]!r}.")
    return value


def _time(text: str) -> float:
    try:
        return seconds_since_1970(timestamp(text))
    except DataError:
        if " " not in text:
            raise
    return seconds_since_1970(timestamp(text.replace(" ", "+")))  # what a plus is in a query, unless quoted
