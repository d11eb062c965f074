"""The routes of version 1: what comes over HTTP, handed to the service, and its answers."""

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from varnn._version import VERSION
from varnn.errors import DataError, ModelFileError
from varnn.service import reading
from varnn.service.errors import NotFound
from varnn.service.http import series
from varnn.service.http.bodies import Parts, json_response, object_of, service_of, stream_of
from varnn.service.http.messages import NEEDED, MessageRoute
from varnn.service.http.openapi import document
from varnn.service.live_stream import LiveStream
from varnn.service.score import over_all
from varnn.service.service import Service

_PART = 1 << 18  # bytes of a file that are sent at a time


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
    return json_response([_told(live) for live in service_of(request).streams()])


async def add_stream(request: Request) -> Response:
    """Begin a stream."""
    wanted = object_of(await request.body())
    name, champion = wanted.get("name"), wanted.get("champion")
    if not isinstance(name, str) or not isinstance(champion, str):
        raise DataError('a stream needs "name" and "champion", the name of a model.')
    live = await asyncio.to_thread(service_of(request).add_stream, name, champion)
    return json_response(_told(live), 201)


async def one_stream(request: Request) -> Response:
    """One stream, with the scores of its models."""
    live = stream_of(request)
    scores = await asyncio.to_thread(scores_of, live)  # of ten thousand series that takes a while
    return json_response(_told(live) | {"scores": scores})


def scores_of(live: LiveStream) -> dict[str, Any]:
    """Scores of a stream's models over all its series."""
    scores = {live.champion: over_all([one.score for one in list(live.keeper.summaries.values())])}
    return scores | {one.name: over_all(list(one.scores.values())) for one in live.keeper.challengers}


async def retire_stream(request: Request) -> Response:
    """End a stream."""
    place = await asyncio.to_thread(service_of(request).retire_stream, request.path_params["stream"])
    return json_response({"retired": request.path_params["stream"], "file": place.name})


async def add_challenger(request: Request) -> Response:
    """Let a model go along."""
    model = object_of(await request.body()).get("model")
    if not isinstance(model, str):
        raise DataError('a challenger needs "model", the name of a model that was uploaded.')
    live = stream_of(request)
    await asyncio.to_thread(service_of(request).add_challenger, live.name, model)
    return json_response(_told(stream_of(request)), 201)


async def drop_challenger(request: Request) -> Response:
    """Let a challenger go."""
    live = stream_of(request)
    await asyncio.to_thread(service_of(request).drop_challenger, live.name, request.path_params["model"])
    return json_response(_told(stream_of(request)))


async def promote(request: Request) -> Response:
    """Let a challenger and the champion change places."""
    live = stream_of(request)
    anew = await asyncio.to_thread(service_of(request).promote, live.name, request.path_params["model"])
    return json_response(_told(stream_of(request)) | {"series_begun_anew": anew})


async def backup(request: Request) -> Response:
    """The state file as it is now."""
    live = stream_of(request)
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


# -- models, health ----------------------------------------------------------------------------------


async def list_models(request: Request) -> Response:
    """All models."""
    service = service_of(request)
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
    found = await asyncio.to_thread(service_of(request).add_model, request.path_params["model"], blob)
    return json_response(found, 201)


async def drop_model(request: Request) -> Response:
    """Delete a model."""
    await asyncio.to_thread(service_of(request).drop_model, request.path_params["model"])
    return json_response({"deleted": request.path_params["model"]})


async def health(request: Request) -> Response:
    """How the service is."""
    service = service_of(request)
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
    told = {"version": VERSION, "uptime_seconds": time.time() - service.started}
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
    service = service_of(request)
    wrong = [live.name for live in service.streams() if not live.is_ready]
    if not service.is_open or request.app.state.ending() or wrong:
        return Response(f"not ready: {', '.join(wrong) or 'ending'}", 503, media_type="text/plain")
    return Response("ok", media_type="text/plain")


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
    Route(f"{_STREAM}/live", series.live_events, methods=["GET"]),
    Route(f"{_STREAM}/events", series.events, methods=["GET"]),
    Route(f"{_STREAM}/series", series.list_series, methods=["GET"]),
    Route(f"{_SERIES}/history", series.history, methods=["GET"]),
    Route(f"{_SERIES}/snapshot", series.snapshot, methods=["GET"]),
    Route(f"{_SERIES}/snapshot", series.put_snapshot, methods=["PUT"]),
    Route(_SERIES, series.one_series, methods=["GET"]),
    Route(_SERIES, series.forget_series, methods=["DELETE"]),
    Route("/v1/models", list_models, methods=["GET"]),
    Route("/v1/models/{model}", put_model, methods=["PUT"]),
    Route("/v1/models/{model}", drop_model, methods=["DELETE"]),
    Route("/v1/health", health, methods=["GET"]),
    Route("/v1/openapi.json", openapi, methods=["GET"]),
    Route("/healthz", is_alive, methods=["GET"]),
    Route("/readyz", is_ready, methods=["GET"]),
]
