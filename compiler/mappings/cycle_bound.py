"""A lower bound on the cycles and read bytes of a layer, for any plan.

The bound on cycles is the longest of three times: the slots of the compute unit, the bytes of all loaded
tensors, each once as it lies in DRAM, and the stored bytes at the pace of the store unit's lanes. The times
until the first operands arrive and after the last result are added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel.base.fast_unique import distinct
from accel.compiler.operators.default_schedule import planner_of
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.conv_model import ConvShape, DepthwiseShape
from accel.compiler.plans.pipeline_model import first_instruction_cycle
from accel.compiler.plans.plan_arrays import IntArray
from accel.compiler.plans.pool_model import PoolShape
from accel.compiler.plans.sum_shape import SumShape
from accel.compiler.target.builtin_emitters import overwrites
from accel.core.config import Config
from accel.core.timing_rules import REQUEST_STARTUP, compute_depth, store_depth


class LowerBound(NamedTuple):
    """``read_bytes`` are those of inputs and weights."""

    cycles: float
    read_bytes: float


class _Work(NamedTuple):
    """The least work: output blocks, bytes of inputs and weights, other bytes to load, and slots after the
    first load."""

    outputs: int
    operand_bytes: float
    other_bytes: float
    slots: float


def lower_bound(workload: Workload, config: Config) -> LowerBound:
    shape = planner_of(workload).features(workload, config)
    work = _pool_work(shape, config) if isinstance(shape, PoolShape) else _sum_work(shape, config)
    pace = 1.0 if isinstance(shape, PoolShape) else shape.store_pace(config)
    store = work.outputs * config.out_element_bytes * pace / config.bus_bytes
    first = first_instruction_cycle(config) + REQUEST_STARTUP + config.read_latency
    last = compute_depth(config) + REQUEST_STARTUP + store_depth(config) + config.write_latency
    load = (work.operand_bytes + work.other_bytes) / config.bus_bytes
    return LowerBound(first + max(work.slots, load, store) + last, work.operand_bytes)


def _pool_work(shape: PoolShape, config: Config) -> _Work:
    slide = shape.slide
    elements = shape.batches * shape.channels
    for axis in range(2):
        taps = slide.kernel[axis], slide.stride[axis], slide.dilation[axis]
        positions = distinct(_tap_positions(slide.outputs[axis], *taps) - slide.padding[axis])
        elements *= int(((positions >= 0) & (positions < slide.size[axis])).sum())
    height, width = slide.outputs
    load = config.out_element_bytes / config.bus_bytes
    product = (1 if overwrites(config) else 2) if shape.has_square_blocks else np.inf
    early_resets = 0 if overwrites(config) else min(elements, config.acc_depth)
    slots = shape.slots + elements * min(load, product) - early_resets
    outputs = shape.batches * shape.channels * height * width
    return _Work(outputs, elements * config.out_element_bytes, 0.0, slots)


def _sum_work(shape: object, config: Config) -> _Work:
    """The first tile's resets need no operands."""
    assert isinstance(shape, SumShape)
    weights = shape.groups * shape.channels * shape.depth * _used_taps(shape) if shape.has_weights else 1
    inputs = shape.groups * (shape.channels if shape.is_diagonal else shape.depth) * _used_pixels(shape)
    operands = inputs * config.inp_element_bytes + weights * config.wgt_element_bytes
    others = shape.residual_blocks * config.out_element_bytes
    if shape.epilogue_in_store:
        others += shape.bias_blocks * config.par_element_bytes
    elif shape.has_bias:
        others += shape.bias_blocks * config.acc_element_bytes
    early_resets = shape.reset_passes * min(shape.output_blocks, config.acc_depth)
    return _Work(shape.output_blocks, operands, others, shape.slots - early_resets)


def _tap_positions(outputs: int, taps: int, stride: int, dilation: int) -> IntArray:
    return np.asarray(np.arange(outputs)[:, None] * stride + np.arange(taps) * dilation)


def _input_positions(shape: ConvShape, axis: int) -> tuple[IntArray, IntArray]:
    outputs, before = (shape.rows, shape.columns)[axis], (shape.top, shape.left)[axis]
    taps = shape.kernel[axis] + (shape.extra_taps * axis if isinstance(shape, DepthwiseShape) else 0)
    stride = shape.stride[axis] * (1 if axis else shape.row_step)
    positions = _tap_positions(outputs, taps, stride, shape.dilation[axis]) - before
    return positions, np.asarray((positions >= 0) & (positions < (shape.height, shape.width)[axis]))


def _used_pixels(shape: SumShape) -> int:
    """Return the needed input elements per block of channels, or 0 for transposed convolutions."""
    if not isinstance(shape, ConvShape):
        return shape.batches * shape.rows * shape.columns
    if shape.is_transposed:
        return 0
    down, across = (
        len(distinct(positions[is_inside]))
        for positions, is_inside in (_input_positions(shape, axis) for axis in range(2))
    )
    return shape.batches * down * across


def _used_taps(shape: SumShape) -> int:
    """Return the taps that ever meet the input, or 0 for transposed convolutions."""
    if not isinstance(shape, ConvShape):
        return shape.taps
    if shape.is_transposed:
        return 0
    if isinstance(shape, DepthwiseShape):
        return int(_input_positions(shape, 0)[1].any(axis=0).sum())
    down, across = (int(_input_positions(shape, axis)[1].any(axis=0).sum()) for axis in range(2))
    return down * across
