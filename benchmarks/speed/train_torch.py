"""Training steps on torch: our engines, a plain loop, torch's recurrent layers, the products alone."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.speed.rounds import Contender
from benchmarks.speed.train_case import LEARNING_RATE, Case
from varnn.baselines._networks import build
from varnn.baselines.neural import Kind
from varnn.network.cell import Architecture, Weights
from varnn.network.engines.adam import EPSILON
from varnn.network.engines.engine import Engine, Task, pack
from varnn.network.engines.registry import ENGINES

FUSED, COMPILED = "varnn fused", "varnn compiled"
NAIVE, PRODUCTS = "torch, naive loop", "matrix products alone"


def engines(case: Case) -> tuple[list[Contender], list[str]]:
    """Our engines that can train the case, the readable one first; also those not installed."""
    task = Task(case.architecture, torch.tensor(case.inputs), torch.tensor(case.target), case.window)
    present, absent = [], []
    for engine in reversed(ENGINES):
        name, refusal = f"varnn {engine.name}", engine.refusal(task)
        if refusal is None:
            present.append(Contender(name, _engine(case, engine(task))))
        elif isinstance(refusal, ImportError):
            absent.append(f"{name} ({', '.join(engine.packages)})")
    return present, absent


def peers(case: Case) -> list[Contender]:
    """Torch's own recurrent layers, of the same width and on the same windows."""
    kinds: tuple[Kind, ...] = ("rnn", "gru", "lstm")
    return [Contender(f"torch nn.{kind.upper()}", _recurrent(case, kind)) for kind in kinds]


def naive(case: Case) -> Contender:
    """`PlainVarnn` with autograd and torch's own Adam."""
    return Contender(NAIVE, _step(case, PlainVarnn(case.architecture, case.weights())))


class PlainVarnn(nn.Module):
    """VARNN as it is quickly written: windows (B, w, D) and their labels (B, w) -> last labels (B, 1).

    Examples
    --------
    >>> case = Case("ARM+AM", n_inputs=2, hidden_size=4)
    >>> PlainVarnn(case.architecture, case.weights())(torch.zeros(6, 5, 2), torch.zeros(6, 5)).shape
    torch.Size([6, 1])
    """

    def __init__(self, cell: Architecture, weights: Weights) -> None:
        super().__init__()
        self.cell = cell
        fused = cell.n_inputs + cell.memory_size + cell.activation_memory * cell.hidden_size
        self.fusion = nn.Linear(fused, cell.hidden_size)
        self.readout = nn.Linear(cell.hidden_size, 1)
        self.error = nn.Linear(1, cell.memory_size)
        self.carry = nn.Linear(cell.memory_size, cell.memory_size, bias=False) if cell.accumulate else None
        with torch.no_grad():
            for name, matrix in weights.as_dict().items():
                layer = getattr(self, name.removesuffix("_bias"))
                if name.endswith("_bias"):
                    layer.bias.copy_(torch.tensor(matrix[0]))
                else:
                    layer.weight.copy_(torch.tensor(matrix.T))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Go over the window, one step after another."""
        h = x.new_zeros(len(x), self.cell.memory_size)
        u = x.new_zeros(len(x), self.cell.hidden_size)
        for step in range(x.shape[1]):
            parts = [x[:, step], h, u] if self.cell.activation_memory else [x[:, step], h]
            u = torch.relu(self.fusion(torch.cat(parts, dim=1)))
            y_hat: Tensor = self.readout(u)
            z = self.error(y[:, step : step + 1] - y_hat)
            h = torch.relu(z if self.carry is None else z + self.carry(h))
        return y_hat


def _engine(case: Case, engine: Engine) -> Callable[[int], Tensor]:
    flat = torch.tensor(pack(case.weights()))
    optimiser = engine.optimiser(flat, LEARNING_RATE)
    ends = torch.tensor(case.ends)

    def step(number: int) -> Tensor:
        loss, gradient = engine.loss_and_gradient(flat, ends[number % len(ends)])
        loss = loss.clone()  # an engine may hand out the same buffer each time
        optimiser.step(gradient)
        return loss

    return step


def _recurrent(case: Case, kind: Kind) -> Callable[[int], Tensor]:
    network = build(kind, case.n_inputs, case.hidden_size, seed=2025)
    return _step(case, network, labels=False)


def _step(case: Case, network: Any, *, labels: bool = True) -> Callable[[int], Tensor]:
    inputs, target = torch.tensor(case.inputs), torch.tensor(case.target)
    ends, offsets = torch.tensor(case.ends), torch.arange(1 - case.window, 1)
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, eps=EPSILON)

    def step(number: int) -> Tensor:
        rows = ends[number % len(ends)][:, None] + offsets  # (B, w)
        windows, y = inputs[rows], target[rows]  # (B, w, D), (B, w)
        y_hat = network(windows, y) if labels else network(windows)
        loss = nn.functional.mse_loss(y_hat, y[:, -1:])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimiser.step()
        return loss.detach()

    return step


def products(case: Case) -> Contender:
    """Matrix products a step cannot do without, as few and as large as they can be."""
    cell, steps, batch = case.architecture, case.window, case.batch
    # (rows, inner, columns): forward, gradient of the weights, gradient of what came in.
    n_inputs, hidden_size = cell.n_inputs, cell.hidden_size
    shapes = [(steps * batch, n_inputs, hidden_size), (n_inputs, steps * batch, hidden_size)]
    recurrent = [(cell.memory_size, hidden_size, steps - 1)]
    if cell.activation_memory:
        recurrent.append((hidden_size, hidden_size, steps - 1))
    if cell.accumulate:
        recurrent.append((cell.memory_size, cell.memory_size, steps - 2))
    for came, gone, times in recurrent:
        shapes += [(batch, came, gone), (batch, gone, came)] * times + [(came, times * batch, gone)]
    made = {
        shape: (torch.rand(shape[:2]), torch.rand(shape[1:]), torch.empty(shape[0], shape[2]))
        for shape in set(shapes)
    }
    listed = [made[shape] for shape in shapes]

    def step(number: int) -> None:
        for left, right, out in listed:
            torch.mm(left, right, out=out)

    return Contender(PRODUCTS, step)
