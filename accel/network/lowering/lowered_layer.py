"""A layer as the compiler sees it."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from accel.compiler.operators.operator_registry import WORKLOADS
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload
from accel.core.config import Config
from accel.network.lowering.layer_operand import Operand


class NotOnMachine(Exception):
    pass


class LoweredLayer(Struct, frozen=True, kw_only=True, dict=True):
    """Fused nodes as one operator of the compiler.

    Attributes:
        operator: for example ``conv2d``.
        differences: pairs of values, of 65,536, whose sum or product differs from float32.
    """

    operator: str
    parameters: Mapping[str, Any]
    operands: tuple[Operand, ...]
    output: str
    differences: int = 0

    def workload(self) -> Workload:
        return self._workload

    def check_machine(self, config: Config) -> None:
        """Raise NotOnMachine if the machine lacks a feature."""
        quantized = self.parameters.get("quantized")
        if not isinstance(quantized, Quantized):
            return
        residual = quantized.residual
        if residual is not None and residual.requires_res_mul and not config.res_mul:
            if residual.operation == "multiply":
                raise NotOnMachine("the machine does not multiply two tensors value by value")
            raise NotOnMachine("the machine adds no value per channel that varies")
        if quantized.table is not None and not config.tab_bytes:
            raise NotOnMachine("no scale and bias reproduce all of its values, and the machine has no tables")

    @cached_property
    def _workload(self) -> Workload:
        return WORKLOADS[self.operator](**self.parameters)
