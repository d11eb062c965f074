"""The download code against a real HTTP server on this machine."""

import errno
import socket
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varnn.datasets._download import download
from varnn.errors import DataError

CONTENT = bytes(range(256)) * 4096  # 1 MiB, several pieces


class Server(ThreadingHTTPServer):
    """Serves CONTENT, well or badly."""

    allows_ranges = True
    says_length = True
    cuts_after: int | None = None
    status: int | None = None
    asked: list[str | None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data.zip"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(wanted)
        if server.status is not None:
            self.send_error(server.status)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.allows_ranges else 0
        if start >= len(CONTENT):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(CONTENT)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if server.says_length:
            self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start : server.cuts_after])

    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


server = pytest.fixture(serve)
shared_server = pytest.fixture(serve, scope="module")


def accept(path: Path) -> None:
    if path.read_bytes() != CONTENT:
        raise DataError("not the published bytes.")


def part_of(destination: Path) -> Path:
    return destination.with_name(destination.name + ".part")


def test_file_appears_whole_and_progress_is_told(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    destination = tmp_path / "new" / "folders" / "data.zip"
    download(server.url, destination, check=accept, progress=lambda *now: seen.append(now))
    assert destination.read_bytes() == CONTENT
    assert not part_of(destination).exists()
    received = [one for one, _ in seen]
    assert len(seen) > 2 and received == sorted(received)
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_length_may_be_unknown(server: Server, tmp_path: Path) -> None:
    server.says_length = False
    seen: list[int | None] = []
    download(server.url, tmp_path / "data.zip", check=accept, progress=lambda _, total: seen.append(total))
    assert (tmp_path / "data.zip").read_bytes() == CONTENT
    assert set(seen) == {None}


def test_cut_connection_is_an_error_and_the_next_call_goes_on(server: Server, tmp_path: Path) -> None:
    destination = tmp_path / "data.zip"
    server.cuts_after = 300_000
    with pytest.raises(DataError, match=r"ended after 300,000 of 1,048,576 bytes.*kept in .*a second try"):
        download(server.url, destination, check=accept)
    assert not destination.exists()
    assert part_of(destination).read_bytes() == CONTENT[:300_000]

    server.cuts_after = None
    seen: list[tuple[int, int | None]] = []
    download(server.url, destination, check=accept, progress=lambda *now: seen.append(now))
    assert destination.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]
    assert seen[0][0] > 300_000 and seen[-1] == (len(CONTENT), len(CONTENT))


@settings(max_examples=25, deadline=None)
@given(arrived=st.integers(0, len(CONTENT)), ranges=st.booleans())
def test_any_part_becomes_the_whole(shared_server: Server, arrived: int, ranges: bool) -> None:
    shared_server.allows_ranges = ranges
    with tempfile.TemporaryDirectory() as folder:
        destination = Path(folder, "data.zip")
        part_of(destination).write_bytes(CONTENT[:arrived])
        download(shared_server.url, destination, check=accept)
        assert destination.read_bytes() == CONTENT


def test_server_without_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    server.allows_ranges = False
    part_of(tmp_path / "data.zip").write_bytes(b"something else")
    download(server.url, tmp_path / "data.zip", check=accept)
    assert server.asked == ["bytes=14-"]
    assert (tmp_path / "data.zip").read_bytes() == CONTENT


def test_complete_part_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    part_of(tmp_path / "data.zip").write_bytes(CONTENT)
    seen: list[object] = []
    download(server.url, tmp_path / "data.zip", check=accept, progress=lambda *now: seen.append(now))
    assert (tmp_path / "data.zip").read_bytes() == CONTENT
    assert seen == []


def test_part_longer_than_the_file_starts_again(server: Server, tmp_path: Path) -> None:
    part_of(tmp_path / "data.zip").write_bytes(CONTENT + b"more")
    download(server.url, tmp_path / "data.zip", check=accept)
    assert server.asked == [f"bytes={len(CONTENT) + 4}-", None]
    assert (tmp_path / "data.zip").read_bytes() == CONTENT


def test_bad_content_is_removed(server: Server, tmp_path: Path) -> None:
    destination = tmp_path / "data.zip"
    part_of(destination).write_bytes(b"bytes of an older version")  # the rest is appended to it
    with pytest.raises(DataError, match="not what was published, and was removed: not the published bytes"):
        download(server.url, destination, check=accept)
    assert list(tmp_path.iterdir()) == []
    download(server.url, destination, check=accept)
    assert destination.read_bytes() == CONTENT


def test_server_error_is_named(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(DataError, match=r"data.zip cannot be downloaded: Not Found\.$"):
        download(server.url, tmp_path / "data.zip", check=accept)
    assert list(tmp_path.iterdir()) == []


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens: the connection is refused
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/data.zip"
        with pytest.raises(DataError, match=r"cannot be downloaded: .*refused"):
            download(url, tmp_path / "data.zip", check=accept)


def test_disk_full(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """A file that takes one piece and then no more."""

        def __init__(self, file: IO[bytes]) -> None:
            self.file = file

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, piece: bytes) -> int:
            if self.file.tell():
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(piece)

    genuine = Path.open
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda path, mode: Full(cast(IO[bytes], genuine(path, mode))))
        with pytest.raises(
            DataError, match=r"data.zip.part' cannot be written: No space left.*XDG_CACHE_HOME"
        ):
            download(server.url, tmp_path / "data.zip", check=accept)
    assert not (tmp_path / "data.zip").exists()
    download(server.url, tmp_path / "data.zip", check=accept)  # there is room again
    assert (tmp_path / "data.zip").read_bytes() == CONTENT
    assert server.asked[1] is not None  # and what had arrived was used


def test_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be written"):
        download(server.url, tmp_path / "file" / "data.zip", check=accept)


@pytest.mark.parametrize("says_length", [True, False])
def test_a_download_that_goes_on_beyond_its_size_is_stopped(
    server: Server, tmp_path: Path, says_length: bool
) -> None:
    server.says_length = says_length
    seen: list[int] = []
    with pytest.raises(DataError, match="sends more than 500,000 bytes"):
        download(
            server.url,
            tmp_path / "data.zip",
            check=accept,
            most=500_000,
            progress=lambda received, _: seen.append(received),
        )
    assert all(received <= 500_000 for received in seen)
    assert list(tmp_path.iterdir()) == []
    download(server.url, tmp_path / "data.zip", check=accept, most=len(CONTENT))


def test_a_part_larger_than_the_file_is_begun_anew(server: Server, tmp_path: Path) -> None:
    part_of(tmp_path / "data.zip").write_bytes(CONTENT * 2)
    download(server.url, tmp_path / "data.zip", check=accept, most=len(CONTENT) + 10)
    assert server.asked == [None]


def test_a_length_that_is_no_number_is_refused_in_words(server: Server, tmp_path: Path) -> None:
    class Odd(Handler):
        def send_header(self, keyword: str, value: str) -> None:
            super().send_header(keyword, "many" if keyword == "Content-Length" else value)

    server.RequestHandlerClass = Odd
    with pytest.raises(
        DataError, match="cannot be downloaded: the server says that its file has 'many' bytes"
    ):
        download(server.url, tmp_path / "data.zip", check=accept)
