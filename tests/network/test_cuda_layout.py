"""What the host and the kernel must agree on, without a GPU: C compilers read the kernel's own source."""

import ctypes
import re
import shutil
import subprocess
import sysconfig
import time
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.gpu import made
from varnn.data.files import user_cache
from varnn.network.cell import VARIANTS, Architecture
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.cuda import _cubins, _kernels, _nvrtc, launch
from varnn.network.engines.cuda._layout import (
    BEST_EPOCH,
    DONE,
    MEMBER,
    MOST_AT_ONCE,
    STATES,
    TILE,
    Shape,
    windows_at_once,
)
from varnn.network.engines.cuda._nvrtc import UnavailableError
from varnn.network.engines.cuda.job import TrainingJob
from varnn.network.engines.cuda.launch import Board, Rows, member_table
from varnn.network.training import Epoch, Member, TrainConfig

SOURCE = files("varnn.network.engines.cuda").joinpath("train.cu").read_text()
STRUCT = re.search(r"struct Member \{.*?\n\};", SOURCE, re.DOTALL)
CELL = Architecture.of("ARM", n_inputs=3, hidden_size=4)

compiled_by_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")


def built(source: str, folder: Path, *options: str) -> Any:
    """A library of C++ code."""
    path = folder / f"library{sysconfig.get_config_var('SHLIB_SUFFIX')}"
    (folder / "source.cpp").write_text(source)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-w", *options, "-o", str(path)]
    subprocess.run([*command, str(folder / "source.cpp")], check=True)
    return ctypes.CDLL(str(path))


@compiled_by_gcc
def test_the_struct_of_a_member_has_the_same_places(tmp_path: Path) -> None:
    assert STRUCT is not None
    names = list(MEMBER.names or ())
    places = ", ".join(f"offsetof(Member, {name})" for name in names)
    sizes = ", ".join(f"sizeof(Member::{name})" for name in names)
    library = built(
        f"#include <cstddef>\n{STRUCT[0]}\n"
        f'extern "C" {{ long places[] = {{ {places} }}; long sizes[] = {{ {sizes} }};\n'
        "long whole = sizeof(Member); }",
        tmp_path,
    )
    numbers = ctypes.c_long * len(names)
    fields = [MEMBER.fields[name] for name in names] if MEMBER.fields else []
    assert list(numbers.in_dll(library, "places")) == [place for _, place, *_ in fields]
    assert list(numbers.in_dll(library, "sizes")) == [kind.itemsize for kind, *_ in fields]
    assert ctypes.c_long.in_dll(library, "whole").value == MEMBER.itemsize
    declared = re.sub(r"//.*", "", STRUCT[0][STRUCT[0].index("{") :])
    assert re.findall(r"(\w+)\s*[,;]", declared) == names  # and no field is left out


READER = """
extern "C" float read(const Member* members, int index) {  // what a block would begin with
  const Member& me = members[index];
  float sum = 0;
  for (int e = 0; e < me.last; e++)
    for (int n = me.first[e]; n < me.first[e + 1]; n++) sum += (e + 1) * me.x[me.order[n] * N_D + 1];
  for (int n = 0; n < me.vwindows; n++) sum += me.vx[me.vends[n] * N_D] * me.batch;
  me.state[1] = sum;
  me.losses[me.last - 1] = me.rate, me.vlosses[0] = me.keep + me.clip + me.patience + me.epochs + me.cosine;
  me.progress[0] = me.last, me.progress[1] = 7;
  return *me.stop;
}
"""


@compiled_by_gcc
def test_a_member_is_read_as_it_was_laid_out(tmp_path: Path) -> None:
    """C code, given the table of members and nothing else, finds rows, windows and settings of each."""
    assert STRUCT is not None
    library = built(STRUCT[0] + READER, tmp_path, f"-DN_D={CELL.n_inputs}")
    library.read.restype, library.read.argtypes = ctypes.c_float, [ctypes.c_void_p, ctypes.c_int]
    how = dict(window=5, loss_rows=2, batch_size=9, learning_rate=0.25)
    configs = [
        TrainConfig(**how, epochs=3, schedule="cosine", patience=4, gradient_clip=0.5, weight_ema=0.75),  # type: ignore[arg-type]  # of many kinds
        TrainConfig(**how, epochs=2, patience=None),  # type: ignore[arg-type]  # of many kinds
    ]
    members = [made.member(CELL, 1, rows=90), made.member(CELL, 2, rows=120, validated=False)]
    jobs = [TrainingJob.of(*pair) for pair in zip(members, configs, strict=True)]
    rows, board = Rows(jobs), Board(jobs, lambda index, line: None, pinned=False)
    block, state = torch.empty(rows.n_bytes, dtype=torch.uint8), torch.zeros(2, STATES, len(jobs[0].weights))
    rows.send(block)
    table = member_table(jobs, rows, block.data_ptr(), state, board)
    board.stop[0] = 3
    for index, job in enumerate(jobs):
        assert library.read(table.ctypes.data, index) == 3
        epochs = np.repeat(np.arange(1, job.last + 1), np.diff(job.first))
        expected = (epochs * job.training.inputs[job.training.ends, 1]).sum()
        if job.validation is not None:
            expected += 9 * job.validation.inputs[job.validation.ends, 0].sum()
        assert float(state[index, 0, 1]) == pytest.approx(expected, rel=1e-4)
        assert float(board.losses[index, 0, job.last - 1]) == 0.25
        assert board.progress[index, :2].tolist() == [job.last, 7]
    assert board.losses[:, 1, 0].tolist() == [0.75 + 0.5 + 4 + 3 + 1, 2]


@compiled_by_gcc
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kernel_counts_weights_as_the_cell_does(variant: Any, tmp_path: Path) -> None:
    """The head of the source says how many there are; it is compiled for two shapes."""
    for number, (cell, at_once) in enumerate(
        [
            (Architecture.of(variant, n_inputs=28, hidden_size=64, memory_size=48), 16),
            (Architecture.of(variant, n_inputs=3, hidden_size=7, memory_size=5), 8),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        how = _kernels.options(Shape.of(cell, TrainConfig(window=24, loss_rows=12)), at_once, (9, 0))
        plain = "#define __device__\n#define __constant__\n#define __forceinline__\n"
        library = built(plain + _kernels.head(SOURCE), folder, *(one for one in how if one.startswith("-D")))
        shared_bytes, threads, weights, windows = (ctypes.c_int * 4).in_dll(library, "SIZES")
        assert weights == count_weights(cell)
        assert windows == at_once
        assert threads % 32 == 0
        assert 4 * weights < shared_bytes < 227 * 1024  # of a block of an H200


def test_windows_are_taken_in_whole_tiles() -> None:
    for batch in range(1, 400):
        choices = windows_at_once(batch)
        assert all(one % TILE == 0 and 0 < one <= MOST_AT_ONCE for one in choices)
        assert list(choices) == sorted(choices, reverse=True)
        assert choices[-1] == TILE
        assert choices[0] >= min(batch, MOST_AT_ONCE / 2)


def test_the_source_is_in_the_package_and_every_constant_of_it_is_given() -> None:
    given = Shape.of(CELL, TrainConfig()).constants(8)
    assert set(re.findall(r"\bN_[A-Z]+\b", SOURCE)) == set(given)


# Compiled kernels that are kept.


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return user_cache() / "cuda"


class Compiler:
    """Counts how often it was asked."""

    def __init__(self, code: bytes = b"code") -> None:
        self.code, self.calls = code, 0

    def __call__(self) -> bytes:
        self.calls += 1
        return self.code


def test_what_was_compiled_is_kept(cache: Path) -> None:
    first, second, other = Compiler(), Compiler(b"never"), Compiler(b"other")
    assert _cubins.kept("source -DA=1", first) == b"code"
    assert _cubins.kept("source -DA=1", second) == b"code"
    assert _cubins.kept("source -DA=2", other) == b"other"
    assert (first.calls, second.calls, other.calls) == (1, 0, 1)
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "a folder"])
def test_what_is_damaged_is_compiled_again(damage: str, cache: Path) -> None:
    _cubins.kept("source", Compiler(bytes(range(200))))
    [path] = cache.iterdir()
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    damaged = {"cut": bytes(content[:90]), "flipped": bytes(content)}
    path.write_bytes(damaged.get(damage, b""))
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    again = Compiler(b"again")
    assert _cubins.kept("source", again) == b"again"
    assert again.calls == 1
    if damage != "a folder":
        assert _cubins.kept("source", Compiler(b"never")) == b"again"


def test_without_a_place_to_keep_it_is_compiled_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "varnn").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler = Compiler()
    assert [_cubins.kept("source", compiler) for _ in range(2)] == [b"code"] * 2
    assert compiler.calls == 2
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert _cubins.kept("source", compiler) == b"code"
    assert compiler.calls == 3


# NVRTC, where it is.


def has_nvrtc() -> bool:
    try:
        _nvrtc._library()
    except UnavailableError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="NVRTC, which torch for CUDA brings, is not here")


@needs_nvrtc
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_source_compiles(variant: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Architecture.of(variant, n_inputs=4, hidden_size=9, memory_size=5, memory_activation="tanh")
    for capability in ((8, 0), (9, 0)):
        how = _kernels.options(Shape.of(cell, TrainConfig(window=6)), 16, capability)
        code = _nvrtc.compiled(SOURCE, how)
        assert code.startswith(b"\x7fELF")
        assert b"train" in code
        with monkeypatch.context() as patched:
            patched.setattr(_nvrtc, "_compile", None)
            assert _nvrtc.compiled(SOURCE, how) == code
    assert len(list(cache.iterdir())) == 2


@needs_nvrtc
def test_a_source_that_does_not_compile_says_why(cache: Path) -> None:
    with pytest.raises(
        UnavailableError, match=r"NVRTC does not compile the kernel: train.cu\(2\): error: .*nothing"
    ):
        _nvrtc.compiled("\n__device__ int a = nothing;", ["--gpu-architecture=sm_90"])
    with pytest.raises(UnavailableError, match=r"does not compile the kernel: .*architecture"):
        _nvrtc.compiled("", ["--gpu-architecture=sm_1"])
    assert not cache.exists()


def test_without_nvrtc_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nvrtc, "_candidates", lambda: iter(["no-such-library.so"]))
    with pytest.raises(UnavailableError, match="NVRTC, which wheels of torch for CUDA bring, is not found"):
        _nvrtc._library.__wrapped__()


# What is read while the GPU computes.


def board(*, epochs: int = 5, on_epoch: Any = None) -> tuple[Board, list[tuple[int, Epoch]]]:
    config = TrainConfig(window=6, batch_size=16, epochs=epochs)
    jobs = [TrainingJob.of(made.member(CELL, seed, rows=90), config) for seed in (1, 2)]
    told: list[tuple[int, Epoch]] = []

    def tell(index: int, line: Epoch) -> None:
        told.append((index, line))
        if on_epoch is not None:
            on_epoch(index, line)

    return Board(jobs, tell, pinned=False), told


def write(one: Board, index: int, loss: float, unseen: float) -> None:
    """What the kernel does when an epoch ends: figures first, then how many there are."""
    done = int(one.progress[index, DONE])
    one.losses[index, :, done] = torch.tensor([loss, unseen])
    one.progress[index, BEST_EPOCH] = 1
    one.progress[index, DONE] = done + 1


def test_epochs_are_told_as_they_end() -> None:
    one, told = board()
    one.look()
    assert told == []
    write(one, 1, 0.5, 0.25)
    one.look()
    one.look()
    assert [(index, line["epoch"], line["loss"], line["validation_loss"]) for index, line in told] == [
        (1, 1, 0.5, 0.25)
    ]
    time.sleep(0.02)
    for loss in (4.0, 3.0):  # two since the last look: they share the time
        write(one, 0, loss, loss)
    one.look()
    assert [(index, line["epoch"], line["loss"]) for index, line in told[1:]] == [(0, 1, 4.0), (0, 2, 3.0)]
    assert told[1][1]["seconds"] == told[2][1]["seconds"] > 0.01
    result = one.result(0, one.jobs[0].weights)
    assert result.losses.tolist() == [4.0, 3.0]
    assert (len(result.seconds), result.best_epoch) == (2, 1)
    assert one.jobs[0].trained(result).history == [line for index, line in told if index == 0]


def test_a_loss_that_is_no_number_is_not_told_but_is_in_the_result() -> None:
    one, told = board()
    write(one, 0, 1.0, 1.0)
    write(one, 0, np.nan, np.nan)
    one.look()
    assert [line["epoch"] for _, line in told] == [1]
    assert np.isnan(one.result(0, one.jobs[0].weights).losses[1])


def test_no_epoch_is_told_twice_when_a_listener_raises() -> None:
    def interrupt(index: int, line: Epoch) -> None:
        if line["epoch"] == 2:
            raise KeyboardInterrupt

    one, told = board(on_epoch=interrupt)
    for loss in (3.0, 2.0, 1.0):
        write(one, 0, loss, loss)
    with pytest.raises(KeyboardInterrupt):
        one.look()
    one.look()
    assert [line["epoch"] for _, line in told] == [1, 2, 3]
    assert len(one.result(0, one.jobs[0].weights).seconds) == 3


def test_it_is_read_while_another_thread_writes() -> None:
    one, told = board(epochs=200)

    def kernel() -> None:
        for epoch in range(200):
            write(one, epoch % 2, float(epoch), float(epoch))

    thread = Thread(target=kernel)
    thread.start()
    while len(told) < 200:
        one.look()
    thread.join()
    for index in (0, 1):
        lines = [line for number, line in told if number == index]
        assert [line["epoch"] for line in lines] == list(range(1, 101))
        assert [line["loss"] for line in lines] == list(range(index, 200, 2))


@pytest.mark.parametrize("piece", [1 << 24, 1000, 256, 7])
def test_arrays_of_several_jobs_are_sent_once(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_PIECE", piece)
    panel = made.panel(200, 3)
    config = TrainConfig(window=6, batch_size=16, epochs=1)
    jobs = [TrainingJob.of(Member(CELL, panel, panel, seed), config) for seed in range(3)]
    rows = Rows(jobs)
    # Inputs and targets are the same of training and validation; windows are each one's own.
    assert rows.n_bytes < 2 * (panel.inputs.nbytes + panel.target.nbytes) + 3 * 2 * 1024 + 3 * 256
    block = torch.empty(rows.n_bytes, dtype=torch.uint8)
    rows.send(block)
    for job in jobs:
        for array in (*job.training, job.first, *(job.validation or ())):
            begin = rows.at(array)
            assert begin % 256 == 0
            assert block[begin : begin + array.nbytes].numpy().tobytes() == array.tobytes()
