"""The part of a network whose shapes depend on values."""

from collections.abc import Mapping

from msgspec import Struct

from accel.base.errors import GraphError
from accel.graph.foreign_operator import open_session, run_bounded
from accel.graph.graph_tensor import Array


class Tail(Struct, frozen=True, kw_only=True):
    """Nodes after the graph. ONNX Runtime executes them at the end of each run.

    For example, a detector's graph returns boxes and scores, and its tail is a NonMaxSuppression.

    Attributes:
        model: an ONNX model in base64.
        inputs: outputs or inputs of the graph, which the model reads.
        outputs: of the whole network. The model computes those that the graph does not.
    """

    kinds: tuple[str, ...]
    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def run(self, tensors: Mapping[str, Array]) -> dict[str, Array]:
        """Return all outputs of the network.

        Raises:
            GraphError: ONNX Runtime is not installed or refuses the model or the values.
        """
        session = open_session(self.model)
        names = [one.name for one in session.get_outputs()]
        feeds = {name: tensors[name].copy(order="C") for name in self.inputs}
        try:
            found = dict(zip(names, run_bounded(session, feeds), strict=True))
        except Exception as error:
            raise GraphError(f"ONNX Runtime refuses: {' '.join(str(error).split())}") from None
        missing = [name for name in self.outputs if name not in found and name not in tensors]
        if missing:
            raise GraphError(f"output {missing[0]!r} has no producer, neither in the graph nor in its tail")
        return {name: found[name] if name in found else tensors[name] for name in self.outputs}
