"""The routes of version 1: what comes over HTTP, handed to the service, and its answers."""

import asyncio
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import varnn
from varnn.data.timestamps import seconds_since_1970, timestamp
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.service import reading
from varnn.service.errors import NotFound
from varnn.service.http.bodies import Parts, json_response, object_of
from varnn.service.http.following import followed
from varnn.service.http.messages import NEEDED, MessageRoute
from varnn.service.http.openapi import document
from varnn.service.live_stream import LiveStream
from varnn.service.score import over_all
from varnn.service.service import Service
from varnn.service.summary import Summary
from varnn.streaming.late import LateLabels
from varnn.streaming.messages import LONGEST_NAME

_PART = 1 << 18  # bytes of a file that are sent at a time
_MOST_LISTED, _MOST_POINTS, _MOST_SPARK = 500, 20_000, 500
_SORTS: dict[str, Callable[[Any, float | None], Any]] = {
    "trouble": lambda one, level: (-one.trouble(level), one.name),
    "name": lambda one, level: str(json.loads(one.name)).lower(),
    "recent": lambda one, level: (-one.at if one.at == one.at else math.inf, one.name),
}


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _live(request: Request) -> LiveStream:
    return _service(request).stream(request.path_params["stream"])


# -- streams -----------------------------------------------------------------------------------------


def _told(live: LiveStream) -> dict[str, Any]:
    return {
        "name": live.name,
        "champion": live.champion,
        "challengers": [one.name for one in live.keeper.challengers],
        "series": live.n_series,
        "rows": sum(one.row + 1 for one in list(live.keeper.summaries.values())),
        "level": live.level,
        "inputs": live.inputs,
        "target": live.target,
        "needs_time": bool(live.model.pipeline.calendar),
        "late": live.settings.late,
    }


async def list_streams(request: Request) -> Response:
    """All streams."""
    return json_response([_told(live) for live in _service(request).streams()])


async def add_stream(request: Request) -> Response:
    """Begin a stream."""
    wanted = object_of(await request.body())
    name, champion = wanted.get("name"), wanted.get("champion")
    if not isinstance(name, str) or not isinstance(champion, str):
        raise DataError('a stream needs "name" and "champion", the name of a model.')
    live = await asyncio.to_thread(_service(request).add_stream, name, champion)
    return json_response(_told(live), 201)


async def one_stream(request: Request) -> Response:
    """One stream, with the scores of its models."""
    live = _live(request)
    scores = await asyncio.to_thread(scores_of, live)  # of ten thousand series that takes a while
    return json_response(_told(live) | {"scores": scores})


def scores_of(live: LiveStream) -> dict[str, Any]:
    """Scores of a stream's models over all its series."""
    scores = {live.champion: over_all([one.score for one in list(live.keeper.summaries.values())])}
    return scores | {one.name: over_all(list(one.scores.values())) for one in live.keeper.challengers}


async def retire_stream(request: Request) -> Response:
    """End a stream."""
    place = await asyncio.to_thread(_service(request).retire_stream, request.path_params["stream"])
    return json_response({"retired": request.path_params["stream"], "file": place.name})


async def add_challenger(request: Request) -> Response:
    """Let a model go along."""
    model = object_of(await request.body()).get("model")
    if not isinstance(model, str):
        raise DataError('a challenger needs "model", the name of a model that was uploaded.')
    live = _live(request)
    await asyncio.to_thread(_service(request).add_challenger, live.name, model)
    return json_response(_told(_live(request)), 201)


async def drop_challenger(request: Request) -> Response:
    """Let a challenger go."""
    live = _live(request)
    await asyncio.to_thread(_service(request).drop_challenger, live.name, request.path_params["model"])
    return json_response(_told(_live(request)))


async def promote(request: Request) -> Response:
    """Let a challenger and the champion change places."""
    live = _live(request)
    anew = await asyncio.to_thread(_service(request).promote, live.name, request.path_params["model"])
    return json_response(_told(_live(request)) | {"series_begun_anew": anew})


async def backup(request: Request) -> Response:
    """The state file as it is now."""
    live = _live(request)
    file = await asyncio.to_thread(_copied, live.path)
    headers = {
        "Content-Disposition": f'attachment; filename="{live.name}.state"',
        "Content-Length": str(os.fstat(file.fileno()).st_size),
    }
    parts = iter(lambda: file.read(_PART), b"")
    return Parts(parts, file.close, media_type="application/vnd.sqlite3", headers=headers)


def _copied(path: Path) -> IO[bytes]:
    """Copy a state file, and give the copy, which has no name any more: it is gone with who reads it."""
    place = path.with_name(f".{path.stem}-{secrets.token_hex(8)}.part")
    try:
        reading.backup(path, place)
        return place.open("rb")
    finally:
        place.unlink(missing_ok=True)


async def live_events(request: Request) -> Response:
    """Rows and events as they come."""
    live = _live(request)
    wanted = {name for text in request.query_params.getlist("series") for name in _names(text)}
    return await followed(request, live, wanted)


# -- series ------------------------------------------------------------------------------------------


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
    live, query = _live(request), request.query_params
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
    live = _live(request)
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
    live = _live(request)
    name, _ = _series(request, live)
    await asyncio.wrap_future(live.call(lambda store: store.forget(name), writes=True))
    live.mended(name)
    return json_response({"forgotten": json.loads(name)})


async def history(request: Request) -> Response:
    """Rows of a series by time."""
    live, query = _live(request), request.query_params
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
    live, query = _live(request), request.query_params
    series = None if query.get("series") is None else _numbered(live, query["series"])[1]
    limit = _whole(query.get("limit", "100"), "limit", 1, 1000)
    found = await asyncio.to_thread(reading.events, live.path, series=series, limit=limit)
    return json_response([{"series": json.loads(one.pop("name")), **one} for one in found])


async def snapshot(request: Request) -> Response:
    """State of a series as bytes."""
    live = _live(request)
    name, _ = _series(request, live)
    blob = await asyncio.wrap_future(live.call(lambda store: _packed(store.stream(name))))
    if blob is None:
        raise NotFound(f"stream {live.name!r} has no series {name}.")
    return Response(blob, media_type="application/octet-stream")


def _packed(late: LateLabels | None) -> bytes | None:
    return None if late is None else late.snapshot()


async def put_snapshot(request: Request) -> Response:
    """Let a series go on from bytes."""
    live, blob = _live(request), await request.body()
    text = request.path_params["series"]
    known = [name for name in _names(text) if name in live.keeper.ids]
    name = known[0] if known else _names(text)[0]
    if len(text) > LONGEST_NAME:
        raise DataError(f"a series' name has at most {LONGEST_NAME} characters; got {len(text)}.")
    await asyncio.wrap_future(live.call(lambda store: store.put(name, blob), writes=True))
    live.mended(name)
    return json_response({"series": json.loads(name), "bytes": len(blob)})


# -- models, health ----------------------------------------------------------------------------------


async def list_models(request: Request) -> Response:
    """All models."""
    service = _service(request)
    return json_response(await asyncio.to_thread(lambda: list(_described(service))))


def _described(service: Service) -> Iterator[dict[str, Any]]:
    for name in service.model_names():
        try:
            yield service.describe_model(name)
        except ModelFileError as error:  # one file that is damaged does not hide the others
            yield {"name": name, "error": str(error)}
        except (NotFound, FileNotFoundError):  # it was deleted just now
            continue


async def put_model(request: Request) -> Response:
    """Take in a model file."""
    blob = await request.body()
    found = await asyncio.to_thread(_service(request).add_model, request.path_params["model"], blob)
    return json_response(found, 201)


async def drop_model(request: Request) -> Response:
    """Delete a model."""
    await asyncio.to_thread(_service(request).drop_model, request.path_params["model"])
    return json_response({"deleted": request.path_params["model"]})


async def health(request: Request) -> Response:
    """How the service is."""
    service = _service(request)
    free: int | None = None
    with suppress(OSError):  # someone deleted the folder; what is wrong is said of each stream
        free = shutil.disk_usage(service.folder).free
    streams = [
        {
            "name": live.name,
            "queue": live.waiting,
            "queue_limit": live.settings.queue,
            "series": live.n_series,
            "observations": live.counts["observed"],
            "predictions": live.counts["predicted"],
            "refused": live.counts["refused"],
            "events": sum(live.event_counts.values()),
            "commits": live.commits,
            "commit_ms": 1000 * live.commit_seconds / max(1, live.commits),
            "slowest_commit_ms": 1000 * live.slowest_commit,
            "file_bytes": _size(live.path),
            "trouble": live.trouble or live.damage,
        }
        for live in service.streams()
    ]
    told = {"version": varnn.__version__, "uptime_seconds": time.time() - service.started}
    return json_response(told | {"disk_free_bytes": free, "streams": streams})


def _size(path: Path) -> int:
    beside = path.with_name(path.name + "-wal")
    size = 0
    for one in (path, beside):
        with suppress(FileNotFoundError):  # between two of its lives
            size += one.stat().st_size
    return size


async def openapi(request: Request) -> Response:
    """The interface, described."""
    return json_response(document())


async def is_alive(request: Request) -> Response:
    """Whether the process answers."""
    return Response("ok", media_type="text/plain")


async def is_ready(request: Request) -> Response:
    """Whether messages are taken, and can be written."""
    service = _service(request)
    wrong = [live.name for live in service.streams() if not live.is_ready]
    if not service.is_open or request.app.state.ending() or wrong:
        return Response(f"not ready: {', '.join(wrong) or 'ending'}", 503, media_type="text/plain")
    return Response("ok", media_type="text/plain")


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


_STREAM = "/v1/streams/{stream}"
_SERIES = _STREAM + "/series/{series:path}"  # names may hold slashes
routes = [
    *(Route(f"{_STREAM}/{verb}", MessageRoute(verb), methods=["POST"]) for verb in NEEDED),
    Route("/v1/streams", list_streams, methods=["GET"]),
    Route("/v1/streams", add_stream, methods=["POST"]),
    Route(_STREAM, one_stream, methods=["GET"]),
    Route(_STREAM, retire_stream, methods=["DELETE"]),
    Route(f"{_STREAM}/challengers", add_challenger, methods=["POST"]),
    Route(f"{_STREAM}/challengers/{{model}}", drop_challenger, methods=["DELETE"]),
    Route(f"{_STREAM}/challengers/{{model}}/promote", promote, methods=["POST"]),
    Route(f"{_STREAM}/backup", backup, methods=["POST"]),
    Route(f"{_STREAM}/live", live_events, methods=["GET"]),
    Route(f"{_STREAM}/events", events, methods=["GET"]),
    Route(f"{_STREAM}/series", list_series, methods=["GET"]),
    Route(f"{_SERIES}/history", history, methods=["GET"]),
    Route(f"{_SERIES}/snapshot", snapshot, methods=["GET"]),
    Route(f"{_SERIES}/snapshot", put_snapshot, methods=["PUT"]),
    Route(_SERIES, one_series, methods=["GET"]),
    Route(_SERIES, forget_series, methods=["DELETE"]),
    Route("/v1/models", list_models, methods=["GET"]),
    Route("/v1/models/{model}", put_model, methods=["PUT"]),
    Route("/v1/models/{model}", drop_model, methods=["DELETE"]),
    Route("/v1/health", health, methods=["GET"]),
    Route("/v1/openapi.json", openapi, methods=["GET"]),
    Route("/healthz", is_alive, methods=["GET"]),
    Route("/readyz", is_ready, methods=["GET"]),
]
for _route in routes:  # a path ends where it ends, and not before a last line break; and names may hold one
    _route.path_regex = re.compile(_route.path_regex.pattern.removesuffix("$") + r"\Z", re.DOTALL)
