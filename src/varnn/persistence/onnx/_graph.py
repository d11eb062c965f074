"""Arithmetic on symbols -> an ONNX model: what a graph needs, so that a step can be written like NumPy.

Every tensor of a graph has the series in step as its first axis. A state goes in under its name and comes
out as ``next_`` and its name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.errors import require

SERIES = "series"  # the first axis of all that goes in or out; its length is free
_OPSET, _IR = 17, 8  # of 2022, so that runtimes of the last years read it


class Value:
    """A tensor of a graph under construction; what is done to it adds nodes to the graph."""

    def __init__(self, graph: "Graph", name: str, dtype: npt.DTypeLike) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def __add__(self, other: "Operand") -> "Value":
        return self.graph.node("Add", self, other)

    def __sub__(self, other: "Operand") -> "Value":
        return self.graph.node("Sub", self, other)

    def __mul__(self, other: "Operand") -> "Value":
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: "Operand") -> "Value":
        return self.graph.node("Div", self, other)

    def __mod__(self, other: "Operand") -> "Value":
        return self.graph.node("Mod", self, other)

    def __matmul__(self, other: "Operand") -> "Value":
        return self.graph.node("MatMul", self, other)

    def __getitem__(self, column: int) -> "Value":
        """Take one place of the last axis, and lose the axis."""
        return self.graph.node("Gather", self, np.int64(column), axis=-1)

    def between(self, first: int, last: int, axis: int) -> "Value":
        """Take the places from first to before last of an axis."""
        return self.graph.node("Slice", self, *(np.array([one]) for one in (first, last, axis)))

    def padded(self, *, axis: int, axes: int) -> "Value":
        """Add a place of zeros at the end of an axis; the tensor has so many axes."""
        pads = np.zeros(2 * axes, np.int64)
        pads[axes + axis] = 1
        return self.graph.node("Pad", self, pads)

    def unsqueeze(self, *axes: int) -> "Value":
        """Add axes of length one."""
        return self.graph.node("Unsqueeze", self, np.array(axes))

    def clip(self, low: float, high: float) -> "Value":
        """Bound the values."""
        return self.graph.node("Clip", self, float(low), float(high))

    def sum(self, axis: int) -> "Value":
        """Sum over an axis, and lose it."""
        return self.graph.node("ReduceSum", self, np.array([axis]), keepdims=0)

    def mean(self, axis: int) -> "Value":
        """Average over an axis, and lose it."""
        return self.graph.node("ReduceMean", self, axes=[axis], keepdims=0)

    def largest(self, *axes: int) -> "Value":
        """Find the largest over some axes, and keep these with length one."""
        return self.graph.node("ReduceMax", self, axes=list(axes), keepdims=1)

    def apply(self, function: str) -> "Value":
        """Apply an operator of one operand, such as ``"Relu"``."""
        return self.graph.node(function, self)

    def is_missing(self) -> "Value":
        """Tell where the tensor is NaN."""
        return self.graph.node("IsNaN", self, dtype=np.bool_)

    def is_finite(self) -> "Value":
        """Tell where the tensor is a number, and not infinite."""
        infinite = self.graph.node("IsInf", self, dtype=np.bool_)
        return self.is_missing().either(infinite).opposite()

    def at_least(self, other: "Operand") -> "Value":
        """Tell where the tensor is no smaller."""
        return self.graph.node("GreaterOrEqual", self, other, dtype=np.bool_)

    def both(self, other: "Value") -> "Value":
        """Tell where two tensors of truth values are true."""
        return self.graph.node("And", self, other)

    def either(self, other: "Value") -> "Value":
        """Tell where one of two tensors of truth values is true, or both."""
        return self.graph.node("Or", self, other)

    def opposite(self) -> "Value":
        """Tell where a tensor of truth values is not true."""
        return self.graph.node("Not", self)

    def where(self, then: "Operand", otherwise: "Operand") -> "Value":
        """Choose by a tensor of truth values; one of the two must be a tensor of the graph."""
        dtype = next(one.dtype for one in (then, otherwise) if isinstance(one, Value))
        return self.graph.node("Where", self, then, otherwise, dtype=dtype)

    def cast(self, dtype: npt.DTypeLike) -> "Value":
        """Change the type of the numbers."""
        return self.graph.node("Cast", self, dtype=dtype, to=self.graph.kind(dtype))


Operand = Value | npt.NDArray[Any] | np.generic | float


class Graph:
    """An ONNX graph under construction."""

    def __init__(self) -> None:
        self._onnx = require("onnx", extra="onnx", purpose="to_onnx()")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._next: list[Any] = []
        self._shapes: dict[str, tuple[int, ...]] = {}  # of states, without the axis of series

    @property
    def states(self) -> list[str]:
        """Names of the states, in the order in which they go in and come out."""
        return list(self._shapes)

    def input(self, name: str, shape: Sequence[int] = (), dtype: npt.DTypeLike = np.float64) -> Value:
        """Declare what goes in: (series, *shape)."""
        self._inputs.append(self._described(name, shape, dtype))
        return Value(self, name, dtype)

    def state(self, name: str, shape: Sequence[int], dtype: npt.DTypeLike) -> Value:
        """Declare what a step takes from the step before it; :meth:`carry` says what it hands on."""
        self._shapes[name] = tuple(shape)
        return self.input(name, shape, dtype)

    def carry(self, name: str, value: Value) -> None:
        """Say what the next step gets as this state."""
        self.node("Identity", value, name=f"next_{name}")
        self._next.append(self._described(f"next_{name}", self._shapes[name], value.dtype))

    def output(self, name: str, value: Value) -> None:
        """Declare what comes out, one number a series."""
        self.node("Identity", value, name=name)
        self._outputs.append(self._described(name, (), value.dtype))

    def join(self, *columns: Value) -> Value:
        """Put tensors side by side along their last axis."""
        return self.node("Concat", *columns, axis=-1) if len(columns) > 1 else columns[0]

    def node(
        self,
        operator: str,
        *operands: Operand,
        name: str | None = None,
        dtype: npt.DTypeLike | None = None,
        **attributes: Any,
    ) -> Value:
        """Add a node; numbers become constants, plain ones of the type of the first tensor."""
        own = next(one.dtype for one in operands if isinstance(one, Value))
        named = [self._name(one, dtype or own if operator == "Where" else own) for one in operands]
        result = name or f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, named, [result], **attributes))
        return Value(self, result, dtype or own)

    def kind(self, dtype: npt.DTypeLike) -> int:
        """ONNX's number for a type."""
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def model(self, *, producer_version: str, description: str, metadata: Mapping[str, str]) -> Any:
        """Close the graph and give it as an ``onnx.ModelProto``."""
        helper = self._onnx.helper
        # The order of states going in and coming out is the same, whatever order the step computes in.
        following = {one.name.removeprefix("next_"): one for one in self._next}
        outputs = [*self._outputs, *(following[name] for name in self.states)]
        graph = helper.make_graph(
            self._nodes, "varnn_step", self._inputs, outputs, initializer=self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="varnn",
            producer_version=producer_version,
            doc_string=description,
            ir_version=_IR,
            opset_imports=[helper.make_opsetid("", _OPSET)],
        )
        helper.set_model_props(model, dict(metadata))
        return model

    def _name(self, operand: Operand, dtype: npt.DTypeLike) -> str:
        if isinstance(operand, Value):
            return operand.name
        array = np.asarray(operand)
        if isinstance(operand, float | int):
            array = array.astype(dtype)
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def _described(self, name: str, shape: Sequence[int], dtype: npt.DTypeLike) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self.kind(dtype), [SERIES, *shape])
