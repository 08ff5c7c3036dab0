"""A builder of deployments."""

from collections.abc import Sequence
from math import prod

import numpy as np

from accel.base.errors import ProgramError
from accel.base.records import replace
from accel.core.config import Config
from accel.core.fault_causes import dram_span
from accel.core.isa import Store
from accel.deployment.deployment_steps import (
    WORKSPACE_STEP,
    Deployment,
    Detail,
    Fill,
    HostArray,
    Move,
    Pack,
    Prepare,
    Show,
    Step,
    Stream,
    Unpack,
    copied,
    one_value,
    placed,
    value_bytes,
)
from accel.graph.graph_tensor import Tensor
from accel.image.image_tensor import ImageTensor
from accel.image.packed_layout import BlockDiagonal, Interleaved
from accel.image.test_scenario import Start
from accel.network.memory_plan import LiveRange, plan_memory
from accel.run.program import Program

MAX_RANK = 16
"""The driver's limit, ``ACCEL_MAX_RANK`` of ``driver/accel_host_steps.h``."""


class DeploymentBuilder:
    """Collects the named arrays and steps of a deployment."""

    def __init__(self, name: str, config: Config, inputs: Sequence[Tensor]) -> None:
        self._name = name
        self._config = config
        self._streams: list[Stream] = []
        self._arrays: dict[str, HostArray] = {}
        self._steps: list[tuple[Detail, str | None, str | None, str | None]] = []
        for number, tensor in enumerate(inputs):
            self._arrays[tensor.name] = _array(tensor, "input", number)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def new(self, name: str, tensor: Tensor, *, output: int | None = None) -> None:
        assert name not in self._arrays
        place, at = ("workspace", 0) if output is None else ("output", output)
        self._arrays[name] = _array(tensor, place, at)

    def fresh(self, like: str, shape: tuple[int, ...], dtype: str) -> str:
        name, number = like, 1
        while name in self._arrays:
            number += 1
            name = f"{like} ({number})"
        self.new(name, Tensor(name=name, shape=shape, dtype=dtype))
        return name

    def step(
        self,
        detail: Detail,
        source: str | None = None,
        target: str | None = None,
        *,
        other: str | None = None,
    ) -> None:
        self._steps.append((detail, source, other, target))

    def stream(self, program: Program, cycles: int, layers: Sequence[str] = ()) -> int:
        """Prove that a program is free of races, add it, and return its number."""
        _check_repeatable(program)
        program.check().raise_if_bad()
        self._streams.append(Stream(image=program, offset=0, cycles=cycles, layers=tuple(layers)))
        return len(self._streams) - 1

    def pack(self, tensor: ImageTensor, stream: int, source: str) -> None:
        _check_rank(tensor)
        if tensor.preparation is not None:
            one = tensor.preparation
            target = self.fresh(f"{tensor.name} prepared", tensor.shape, tensor.dtype)
            detail = Prepare(
                size=prod(tensor.shape), accepted=one.accepted, bounds=one.bounds, offset=one.offset
            )
            self.step(detail, source, target)
            source = target
        if tensor.view is not None and tensor.widening is not None:
            target = self.fresh(f"{tensor.name} arranged", tensor.inner_shape, tensor.dtype)
            self.step(Show(dtype=tensor.dtype, view=tensor.view), source, target)
            source, tensor = target, replace(tensor, view=None)
        if tensor.widening is not None:
            target = self.fresh(f"{tensor.name} widened", tensor.layout.shape, tensor.dtype)
            for step in _widened(tensor, tensor.widening):
                self.step(step, None if isinstance(step, Fill) else source, target)
            source = target
        self.step(Pack(tensor=tensor, stream=stream), source)

    def unpack(self, tensor: ImageTensor, stream: int, target: str) -> None:
        _check_rank(tensor)
        self.step(Unpack(tensor=tensor, stream=stream), target=target)

    def result(self) -> Deployment:
        used: dict[str, list[int]] = {}
        for at, (_, *names) in enumerate(self._steps):
            for name in names:
                if name is not None:
                    used.setdefault(name, []).append(at)
        live_ranges = [
            LiveRange(name=name, nbytes=one.nbytes, first=used[name][0], last=used[name][-1])
            for name, one in self._arrays.items()
            if one.place == "workspace" and name in used
        ]
        workspace = plan_memory(live_ranges, WORKSPACE_STEP)
        arrays = {
            name: replace(one, at=workspace.offsets[name]) if one.place == "workspace" else one
            for name, one in self._arrays.items()
            if one.place != "workspace" or name in used
        }
        numbers = {name: number for number, name in enumerate(arrays)}
        return Deployment(
            name=self._name,
            config=self._config,
            streams=tuple(placed(self._streams)),
            arrays=tuple(arrays.values()),
            steps=tuple(
                Step(
                    detail=detail,
                    source=None if source is None else numbers[source],
                    other=None if other is None else numbers[other],
                    target=None if target is None else numbers[target],
                )
                for detail, source, other, target in self._steps
            ),
            workspace_bytes=workspace.nbytes,
        )


def _array(tensor: Tensor, place: str, at: int) -> HostArray:
    return HostArray(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        place=place,
        at=at,
        quantization=tensor.quantization,
    )


def _check_rank(tensor: ImageTensor) -> None:
    seen = 0 if tensor.view is None else max(len(tensor.view.shape), len(tensor.view.sizes))
    rank = max(len(tensor.layout.packed), len(tensor.layout.shape), seen)
    if rank > MAX_RANK:
        raise ProgramError(f"tensor {tensor.name!r} has {rank} dimensions; a package has at most {MAX_RANK}")


def _check_repeatable(program: Program) -> None:
    start = program.start
    if start.contents or start.tokens != Start().tokens:
        raise ProgramError(
            "the program starts from contents of scratchpads or from tokens; a package has none"
        )
    base = program.config.mem_base
    held = [(program.code_offset, program.code_offset + len(program.code))]
    held += [(offset, offset + len(content)) for offset, content in program.segments]
    for index, one in enumerate(program.instructions):
        if not isinstance(one, Store):
            continue
        low, high = (address - base for address in dram_span(one, program.config))
        if any(max(low, start) < min(high, stop) for start, stop in held):
            raise ProgramError(
                f"instruction {index} writes over constants or instructions; a package is loaded once and "
                "runs often"
            )


def _widened(tensor: ImageTensor, widening: BlockDiagonal | Interleaved) -> list[Fill | Move]:
    nbytes = value_bytes(tensor.dtype)
    wide = tensor.layout.shape
    size = prod(wide)
    if isinstance(widening, Interleaved):
        words = np.broadcast_to(np.array(widening.words, dtype=np.int32), (widening.channels,))
        template = np.stack([np.zeros_like(words), words], axis=1)
        move = Move(value_bytes=nbytes, sizes=wide[:1], source_strides=(1,), target_strides=(2,))
        return [Fill(values=copied(template, tensor.dtype), value_bytes=nbytes, nbytes=size * nbytes), move]
    rows, columns, *rest = tensor.inner_shape
    inner = columns * prod(rest)
    steps: list[Fill | Move] = [
        Fill(values=one_value(0, tensor.dtype), value_bytes=nbytes, nbytes=size * nbytes)
    ]
    for first in range(0, rows, widening.rows):
        column = first // widening.rows % widening.merged
        steps.append(
            Move(
                value_bytes=nbytes,
                sizes=(min(widening.rows, rows - first), inner),
                source_strides=(inner, 1),
                target_strides=(inner * widening.merged, 1),
                source_start=first * inner,
                target_start=first * inner * widening.merged + column * inner,
            )
        )
    return steps
