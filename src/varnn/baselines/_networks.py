"""The neural baselines in torch: networks with Keras' initial weights, and one training loop.

The paper ran them in TensorFlow, whose defaults differ from torch's: Glorot-uniform kernels,
orthogonal recurrent kernels, zero biases (one for an LSTM's forget gate), Adam with eps 1e-7.
"""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # its usual name

from varnn.baselines._regression import Examples
from varnn.errors import TrainingError
from varnn.network.training import pick_device

Activation = Literal["relu", "tanh"]
Activate = Callable[[Tensor], Tensor]
ROWS_AT_ONCE = 8192  # rows predicted together


class Settings(Protocol):
    """What a training has to know: `varnn.baselines.neural.Network` says it."""

    @property
    def kind(self) -> str:
        """One of mlp, rnn, lstm and gru."""
        ...

    hidden_size: int
    epochs: int
    batch_size: int
    learning_rate: float
    patience: int | None
    device: str
    random_state: int

    @property
    def activation(self) -> Activation | None:
        """Of a recurrent layer; None is the usual one."""
        ...


class Recurrent(nn.Module):
    """A recurrent layer, and a linear head on its last hidden state: (B, T, C) -> (B, 1)."""

    def __init__(self, kind: str, n_channels: int, hidden_size: int, activation: Activation) -> None:
        super().__init__()
        self.layer: nn.RNNBase
        if kind == "rnn":
            self.layer = nn.RNN(n_channels, hidden_size, nonlinearity=activation, batch_first=True)
        else:
            layer = nn.LSTM if kind == "lstm" else nn.GRU
            self.layer = layer(n_channels, hidden_size, batch_first=True)
        self.head = nn.Linear(hidden_size, 1)
        # Torch's gated layers know tanh alone; with relu, as Keras has it on request, they are stepped here.
        self.step = None if activation == "tanh" or kind == "rnn" else {"lstm": lstm, "gru": gru}[kind]

    def forward(self, steps: Tensor) -> Tensor:
        """Predict (B, 1) labels."""
        if self.step is None:
            states, _ = self.layer(steps)
            last = states[:, -1]
        else:
            last = self.step(self.layer, steps, torch.relu)
        return self.head(last)  # type: ignore[no-any-return]  # a Module call is untyped


def lstm(layer: nn.RNNBase, steps: Tensor, activate: Activate) -> Tensor:
    """Last hidden state of an LSTM whose cell and output are activated so; its gates stay sigmoid."""
    weights = dict(layer.named_parameters())
    hidden = cell = steps.new_zeros(len(steps), layer.hidden_size)
    of_inputs = F.linear(steps, weights["weight_ih_l0"], weights["bias_ih_l0"])
    for step in of_inputs.unbind(dim=1):
        sums = step + F.linear(hidden, weights["weight_hh_l0"], weights["bias_hh_l0"])
        enter, forget, candidate, leave = sums.chunk(4, dim=1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * activate(candidate)
        hidden = leave.sigmoid() * activate(cell)
    return hidden


def gru(layer: nn.RNNBase, steps: Tensor, activate: Activate) -> Tensor:
    """Last hidden state of a GRU whose candidate is activated so; its gates stay sigmoid."""
    weights = dict(layer.named_parameters())
    hidden = steps.new_zeros(len(steps), layer.hidden_size)
    of_inputs = F.linear(steps, weights["weight_ih_l0"], weights["bias_ih_l0"])
    for step in of_inputs.unbind(dim=1):
        reset, update, candidate = step.chunk(3, dim=1)
        past = F.linear(hidden, weights["weight_hh_l0"], weights["bias_hh_l0"]).chunk(3, dim=1)
        kept = (update + past[1]).sigmoid()
        new = activate(candidate + (reset + past[0]).sigmoid() * past[2])
        hidden = kept * hidden + (1 - kept) * new
    return hidden


def build(
    kind: str, n_channels: int, hidden_size: int, seed: int, activation: Activation | None = None
) -> nn.Module:
    """Make a network as Keras would start it; torch's own random state is left as it was.

    Examples
    --------
    >>> network = build("gru", n_channels=3, hidden_size=4, seed=1)
    >>> network(torch.zeros(2, 5, 3)).shape
    torch.Size([2, 1])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network: nn.Module
        if kind == "mlp":
            network = nn.Sequential(nn.Linear(n_channels, hidden_size), nn.ReLU(), nn.Linear(hidden_size, 1))
        else:
            usual: Activation = "relu" if kind == "rnn" else "tanh"
            network = Recurrent(kind, n_channels, hidden_size, activation or usual)
        for name, weights in network.named_parameters():
            if "bias" in name:
                nn.init.zeros_(weights)
            elif "weight_hh" in name:
                nn.init.orthogonal_(weights)
            else:
                nn.init.xavier_uniform_(weights)
    if isinstance(network, Recurrent):
        biases = dict(network.layer.named_parameters())
        if kind == "lstm":
            with torch.no_grad():  # the gates of a bias come in the order input, forget, cell, output
                biases["bias_ih_l0"][hidden_size : 2 * hidden_size] = 1.0
        if kind != "gru":  # torch adds two biases up where Keras has one; its GRU has both, too
            biases["bias_hh_l0"].requires_grad_(False)
    return network


@dataclass(eq=False)
class TrainedNetwork:
    """A network, and what happened in each epoch."""

    network: nn.Module
    history: list[dict[str, float]] = field(default_factory=list)

    def predict(self, regressors: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Predict (B,) labels."""
        device = next(self.network.parameters()).device
        with torch.no_grad():
            parts = [
                self.network(torch.from_numpy(regressors[begin : begin + ROWS_AT_ONCE]).to(device))
                for begin in range(0, len(regressors), ROWS_AT_ONCE)
            ]
            return np.asarray(torch.cat(parts)[:, 0].cpu().numpy())


def train(settings: Settings, examples: Examples, validation: Examples | None) -> TrainedNetwork:
    """Minimise the squared error of shuffled batches; keep the best epoch, or the last one."""
    device = pick_device(settings.device)
    regressors, labels = (torch.from_numpy(one).to(device) for one in examples)
    network = build(
        settings.kind,
        regressors.shape[-1],
        settings.hidden_size,
        settings.random_state,
        settings.activation,
    )
    network.to(device)
    take_step = _steps(network, regressors, labels, settings)
    generator = np.random.default_rng([settings.random_state, 1])
    trained = TrainedNetwork(network)
    best, best_error, best_epoch = copy.deepcopy(network.state_dict()), math.inf, 0
    for epoch in range(1, settings.epochs + 1):
        began = time.perf_counter()
        order = torch.from_numpy(generator.permutation(len(labels))).to(device)
        total = torch.zeros((), device=device)
        for batch in torch.split(order, settings.batch_size):
            total += take_step(batch) * len(batch)
        line = {"epoch": float(epoch), "loss": float(total) / len(labels)}
        if not math.isfinite(line["loss"]):
            raise TrainingError(
                f"the loss must stay finite; in epoch {epoch} of {settings.kind!r} it became {line['loss']}. "
                f"Lower learning_rate (now {settings.learning_rate:g})."
            )
        if validation is not None:
            misses = trained.predict(validation[0]).astype(np.float64) - validation[1]
            line["validation_loss"] = float(np.mean(misses**2))
        line["seconds"] = time.perf_counter() - began
        trained.history.append(line)
        error = line.get("validation_loss", -epoch)  # nothing to judge by: the latest is best
        if error < best_error:
            best, best_error, best_epoch = copy.deepcopy(network.state_dict()), error, epoch
        elif settings.patience is not None and epoch - best_epoch >= settings.patience:
            break
    network.load_state_dict(best)
    return trained


Step = Callable[[Tensor], Tensor]  # rows of a batch -> its loss before the step


def _steps(network: nn.Module, regressors: Tensor, labels: Tensor, settings: Settings) -> Step:
    """Make the function that takes a step of Adam on the mean squared error of a batch."""
    learned = [one for one in network.parameters() if one.requires_grad]
    on_gpu = regressors.is_cuda
    optimizer = torch.optim.Adam(learned, lr=settings.learning_rate, eps=1e-7, capturable=on_gpu)

    def take_step(batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = torch.mean(torch.square(network(regressors[batch])[:, 0] - labels[batch]))
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
        return loss.detach()

    if on_gpu and len(labels) >= settings.batch_size:
        return _recorded(take_step, network, optimizer, settings.batch_size)
    return take_step


def _recorded(take_step: Step, network: nn.Module, optimizer: torch.optim.Adam, batch_size: int) -> Step:
    """Record the step of a full batch as a CUDA graph, and replay it.

    A step is some hundred small kernels, and starting them one by one takes several times as long as they
    run. Numbers are those of unrecorded steps; a last batch that is shorter takes one of those.
    """
    rows = torch.arange(batch_size, device=next(network.parameters()).device)
    before = copy.deepcopy(network.state_dict())
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):  # what is made in a first step only must not be recorded
        for _ in range(3):
            take_step(rows)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = take_step(rows)
    network.load_state_dict(before)  # the first steps have not been
    with torch.no_grad():
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()

    def replay(batch: Tensor) -> Tensor:
        if len(batch) < batch_size:
            return take_step(batch)
        rows.copy_(batch)
        graph.replay()
        return loss

    return replay
