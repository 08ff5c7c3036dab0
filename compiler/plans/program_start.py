"""The start of a program of tiled sums: after instructions, micro-ops, resets and the bias."""

from __future__ import annotations

import numpy as np

from accel.compiler.plans.pipeline_model import first_instruction_cycle
from accel.compiler.plans.plan_arrays import FloatArray
from accel.compiler.plans.tile_sizes import TileSizes
from accel.core.config import INSTRUCTION_BYTES, UOP_BYTES
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, compute_depth

DISPATCH_CYCLES = 12
"""Largest number of cycles from the first instructions to the load unit's first one."""
_DECODE_CYCLES = 3
"""Cycles from the first instructions to the request of micro-ops."""
_FIXED_INSTRUCTIONS = 3
"""Instructions other than those of tiles and steps."""


class ProgramStart:
    """Cycles in which units and the read port become free for the first step.

    Attributes:
        late_acc_beats: beats of the compute unit's LOADs after the first, if they follow the operands of the
            first step, else 0. They load a folded bias, or further tensors of the bias and the micro-ops,
            which only steps after the bias need.
        late_acc_loads: number of these LOADs.
    """

    def __init__(self, sizes: TileSizes) -> None:
        shape, config = sizes.shape, sizes.config
        uops = np.minimum(sizes.micro_ops, config.uop_depth) * UOP_BYTES / config.bus_bytes
        self.late_acc_beats = self._late_acc_beats(sizes, uops)
        self.late_acc_loads = (self.late_acc_beats > 0) * max(1.0, shape.biases)
        is_resident = sizes.bias_resident
        loads_bias = shape.has_bias and not shape.epilogue_in_store
        if loads_bias and not shape.folds_bias:  # the micro-ops follow the bias
            uops = np.where(is_resident, 0.0, uops)
        start = first_instruction_cycle(config)
        instructions = _FIXED_INSTRUCTIONS + sizes.tiles * (3 * sizes.steps + shape.passes + 1)
        fetched = np.minimum(config.fetch_buffer, instructions) * INSTRUCTION_BYTES / config.bus_bytes
        self.port = start + fetched + uops
        uops_arrive = np.maximum(self.port, start + _DECODE_CYCLES + config.read_latency)
        self.compute = np.where(uops > 0, uops_arrive + WRITE_DELAY + 1, start)
        if shape.folds_bias:
            self.compute = self.compute + sizes.accumulators + compute_depth(config)
        dispatch = start + DISPATCH_CYCLES + shape.residual_product
        self.load = np.full(len(self.compute), float(dispatch))
        if shape.residual_product:
            self.port = self.port + config.wgt_element_bytes / config.bus_bytes
        if shape.epilogue_in_store:
            parameters = shape.bias_blocks * config.par_element_bytes / config.bus_bytes
            self.port = self.port + np.where(is_resident, parameters, 0)
        elif loads_bias and (shape.loads_bias_first or not shape.folds_bias):
            self._load_resident_bias(sizes)

    def _load_resident_bias(self, sizes: TileSizes) -> None:
        """The first step's last LOAD waits for its request."""
        config, is_resident = sizes.config, sizes.bias_resident
        inputs = sizes.step_inputs * config.inp_element_bytes / config.bus_bytes
        self.load = np.where(is_resident, np.maximum(self.load, self.compute - inputs), self.load)
        bias = self._tensor_beats(sizes)
        loading = REQUEST_STARTUP + config.read_latency + bias + WRITE_DELAY + 1
        self.compute = self.compute + np.where(is_resident, loading, 0)
        self.port = self.port + np.where(is_resident, bias, 0)

    @staticmethod
    def _late_acc_beats(sizes: TileSizes, uops: FloatArray) -> FloatArray:
        shape = sizes.shape
        folds_first = shape.folds_bias and shape.loads_bias_first
        if not shape.has_bias or shape.epilogue_in_store or folds_first:
            return 0.0 * uops
        bias = ProgramStart._tensor_beats(sizes)
        late = bias if shape.folds_bias else uops + (shape.biases - 1) * bias
        return np.where(sizes.bias_resident, late, 0.0)

    @staticmethod
    def _tensor_beats(sizes: TileSizes) -> float:
        """Return the beats of one tensor of the bias of all channels."""
        shape, config = sizes.shape, sizes.config
        return shape.bias_blocks / max(1, shape.biases) * config.acc_element_bytes / config.bus_bytes
