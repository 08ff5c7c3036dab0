"""One scale for the operands and the result of a Concat, so that it only moves integers.

With its own scale, each operand must be requantized for each Concat that reads it. For example, the last
Concat of a block of DenseNet-121 has 17 operands.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from accel.formats.quantized_model import Parameters, QuantizedModel

_MAX_RATIO = 2.0
"""If others also read an operand, its scale grows at most by this factor: it loses one bit."""


def share_concat_scales(model: Any) -> int:
    """Share scales where little is lost, in place, and return the number of groups."""
    work = _Concats(model)
    groups = work.groups()
    for group in groups:
        work.unify(group)
    if groups:
        work.match_biases()
        work.finish()
    return len(groups)


class _Concats(QuantizedModel):
    def groups(self) -> list[list[Parameters]]:
        group_of: dict[Parameters, list[Parameters]] = {}
        for concat in self.of_kind("Concat"):
            for operand, result in self._pairs(concat):
                first, second = (group_of.setdefault(one, [one]) for one in (operand, result))
                if first is not second:
                    first += second
                    group_of |= dict.fromkeys(second, first)
        found = {id(group): group for group in group_of.values()}
        return [group for group in found.values() if len({self.range_of(one) for one in group}) > 1]

    def _pairs(self, concat: Any) -> Iterator[tuple[Parameters, Parameters]]:
        readers = self.readers.get(concat.output[0], [])
        results = {self.parameters(one) for one in readers}
        result = results.pop() if len(results) == 1 else None
        if result is None or concat.output[0] in self.outputs:
            return
        for name in concat.input:
            operand = self.activation(name)
            if operand is None or not self._is_same_type(operand, result):
                continue
            if (
                self._only_moves_read(operand)
                or self.range_of(operand)[2] * _MAX_RATIO >= self.range_of(result)[2]
            ):
                yield operand, result

    def _is_same_type(self, left: Parameters, right: Parameters) -> bool:
        types = [self.values(one[1]) for one in (left, right)]
        return types[0] is not None and types[1] is not None and types[0].dtype == types[1].dtype

    def _only_moves_read(self, parameters: Parameters) -> bool:
        numbers = [
            name
            for node in self.readers.get(parameters[0], [])
            if node.op_type == "DequantizeLinear"
            for name in node.output
        ]
        return all(one.op_type == "Concat" for name in numbers for one in self.readers.get(name, []))

    def unify(self, group: list[Parameters]) -> None:
        ranges = [self.range_of(one) for one in group]
        low, high = min(one[0] for one in ranges), max(one[1] for one in ranges)
        zeros = self.values(group[0][1])
        scales = self.values(group[0][0])
        assert zeros is not None
        assert scales is not None
        limits = np.iinfo(zeros.dtype)
        scale = np.asarray((high - low) / (limits.max - limits.min), scales.dtype)
        zero = np.clip(np.rint(limits.min - low / float(scale)), limits.min, limits.max)
        for scale_name, zero_name in group:
            self.set_values(scale_name, np.full_like(self.values(scale_name), scale))
            self.set_values(zero_name, np.full_like(self.values(zero_name), zero))
