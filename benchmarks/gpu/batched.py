"""The peer: PyTorch, a step of many members as batched products in one CUDA graph.

Written as one would for speed: windows are gathered once a step, the inputs' products of all rows of a window
are one product, memory and hidden layer share another, and the graph is replayed without a word from the
host. Forward, backward (autograd) and Adam (fused) alone: it neither clips gradients nor averages weights,
which the kernel does, and knows of no missing labels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from varnn.network.cell import Weights
from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.cuda.job import TrainingJob
from varnn.network.engines.engine import unpack

_WARM_UP = 3  # steps before the capture, as torch asks for


class BatchedGraph:
    """Members of one shape that learn from the same rows, each from windows of its own.

    Parameters
    ----------
    jobs : sequence of TrainingJob
        What to train; the windows of their first epoch are gone through again and again.
    device : torch.device
        Where; the CPU has no graphs, and takes the steps one by one.
    """

    def __init__(self, jobs: Sequence[TrainingJob], device: torch.device) -> None:
        first = jobs[0]
        self.architecture, config = first.architecture, first.config
        self.window, self.loss_rows, batch = config.window, config.loss_rows, config.batch_size
        self.inputs, self.target = (torch.from_numpy(one).to(device) for one in first.training[:2])
        steps = int(first.first[1]) // batch  # whole batches: a graph has one shape
        ends = np.stack([job.training.ends[: steps * batch].reshape(steps, batch) for job in jobs], axis=1)
        self.ends = torch.from_numpy(ends.astype(np.int64)).to(device)  # (steps, E, B)
        self.number = torch.zeros(1, dtype=torch.int64, device=device)
        flat = torch.from_numpy(np.stack([job.weights for job in jobs])).to(device)
        self.adam = FlatAdam(flat, config.learning_rate)
        self.offsets = torch.arange(1 - self.window, 1, device=device)
        self.losses = torch.zeros(len(jobs), device=device)
        self._graph = self._captured() if device.type == "cuda" else None

    def _captured(self) -> Any:
        cuda: Any = torch.cuda  # torch gives some of it no types
        aside = cuda.Stream()
        aside.wait_stream(cuda.current_stream())
        with cuda.stream(aside):
            for _ in range(_WARM_UP):
                self._step()
        cuda.current_stream().wait_stream(aside)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            self._step()
        return graph

    def steps(self, count: int) -> None:
        """Take steps, and wait for them."""
        for _ in range(count):
            if self._graph is None:
                self._step()
            else:
                self._graph.replay()
        if self._graph is not None:
            torch.cuda.synchronize()

    def _step(self) -> None:
        ends = self.ends.index_select(0, self.number)[0]  # (E, B)
        loss, gradient = self.loss_and_gradient(ends)
        self.losses.copy_(loss)
        self.adam.step(gradient)
        self.number.add_(1).remainder_(len(self.ends))

    def loss_and_gradient(self, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Losses (E,) of batches (E, B), and their gradients (E, P)."""
        flat = self.adam.flat.detach().requires_grad_()
        loss = self._loss(unpack(self.architecture, flat), ends)
        (gradient,) = torch.autograd.grad(loss.sum(), flat)
        return loss.detach(), gradient

    def _loss(self, weights: Weights, ends: Tensor) -> Tensor:
        cell = self.architecture
        members, batch = ends.shape
        rows = (ends[:, None, :] + self.offsets[:, None]).reshape(members, -1)  # (E, W * B)
        of_inputs, of_state = weights.fusion[:, : cell.n_inputs], weights.fusion[:, cell.n_inputs :]
        projected = torch.baddbmm(weights.fusion_bias, self.inputs[rows], of_inputs)
        projected = projected.view(members, self.window, batch, -1)
        labels = self.target[rows].view(members, self.window, batch, 1)
        state: Tensor | None = None
        memory: Tensor | None = None
        errors = []
        for step in range(self.window):
            z = projected[:, step]
            u = (z if state is None else torch.baddbmm(z, state, of_state)).relu()
            error = labels[:, step] - torch.baddbmm(weights.readout_bias, u, weights.readout)
            if step >= self.window - self.loss_rows:
                errors.append(error)
            a = torch.baddbmm(weights.error_bias, error, weights.error)
            if cell.accumulate and memory is not None:
                a = torch.baddbmm(a, memory, weights.carry)
            memory = a.relu() if cell.memory_activation == "relu" else a.tanh()
            state = torch.cat([memory, u], dim=-1) if cell.activation_memory else memory
        return torch.cat(errors, dim=-1).square().mean((1, 2))
