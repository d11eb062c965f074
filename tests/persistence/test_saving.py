"""Saving replaces what a file holds, and nothing else about it: not its mode, not a link, never a device."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from varnn.data.files import check_writable, opened_atomically, write_atomically
from varnn.errors import OutputError


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def device(folder: Path, number: int, real: Path) -> Path:
    """Make a device to write to: root could replace the real one, so that is for others only."""
    made = folder / real.name
    try:
        os.mknod(made, stat.S_IFCHR | 0o666, os.makedev(1, number))
        made.open("wb").close()
    except PermissionError:  # a disk without devices, or not root
        made.unlink(missing_ok=True)
        if os.geteuid() == 0 or not real.exists():
            pytest.skip("no device can be made here")
        return real
    return made


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_an_existing_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "state.varnn"
    place.write_bytes(b"old")
    place.chmod(mode)
    write_atomically(place, b"new")
    assert place.read_bytes() == b"new"
    assert stat.S_IMODE(place.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_an_existing_file_keeps_its_owner(tmp_path: Path) -> None:
    place = tmp_path / "state.varnn"
    place.write_bytes(b"old")
    os.chown(place, 12345, 12346)
    write_atomically(place, b"new")
    assert (place.stat().st_uid, place.stat().st_gid) == (12345, 12346)


def test_a_new_file_has_the_mode_that_others_have(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    write_atomically(tmp_path / "new", b"new")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("there", [True, False], ids=["target there", "target not there yet"])
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, there: bool) -> None:
    store = tmp_path / "store"
    store.mkdir()
    target, link, second = store / "v1.varnn", tmp_path / "current.varnn", tmp_path / "again.varnn"
    if there:
        target.write_bytes(b"old")
    link.symlink_to(Path("store") / "v1.varnn")
    second.symlink_to(link)
    check_writable(second)
    write_atomically(second, b"new")
    assert second.is_symlink() and link.is_symlink() and not target.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["again.varnn", "current.varnn", "store"]
    assert names(store) == ["v1.varnn"]


def test_links_in_a_circle_are_refused_in_words(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(OutputError, match="cannot be written"):
        write_atomically(one, b"new")
    assert one.is_symlink() and other.is_symlink()


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    null = device(tmp_path, 3, Path("/dev/null"))
    check_writable(null)
    write_atomically(null, b"new")
    assert stat.S_ISCHR(null.lstat().st_mode)
    assert not [one for one in names(tmp_path) if one.endswith(".part")]


def test_a_pipe_gets_what_is_written(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"new")
    reader.join(timeout=10)
    assert got == [b"new"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    full = device(tmp_path, 7, Path("/dev/full"))
    with pytest.raises(OutputError, match="full' cannot be written: No space left on device"):
        write_atomically(full, b"new" * 100_000)
    assert stat.S_ISCHR(full.lstat().st_mode)


@pytest.mark.parametrize("error", [ValueError("in between"), KeyboardInterrupt(), OSError(errno.EIO, "gone")])
def test_a_draft_goes_when_writing_fails(tmp_path: Path, error: BaseException) -> None:
    place = tmp_path / "state.varnn"
    place.write_bytes(b"old")
    with pytest.raises(BaseException) as raised, opened_atomically(place) as file:
        file.write(b"half")
        raise error
    assert isinstance(raised.value, OutputError if isinstance(error, OSError) else type(error))
    assert names(tmp_path) == ["state.varnn"]
    assert place.read_bytes() == b"old"


def test_the_folder_is_written_to_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a machine that loses power may forget the new name, and find a draft or nothing."""
    synced: list[str] = []
    real = os.fsync

    def watched(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    write_atomically(tmp_path / "state.varnn", b"new")
    assert synced[0].endswith(".part")
    assert synced[1:] == [str(tmp_path)]


def test_a_name_as_long_as_names_may_be_can_be_written(tmp_path: Path) -> None:
    place = tmp_path / ("m" * 255)
    write_atomically(place, b"new")
    assert place.read_bytes() == b"new"
