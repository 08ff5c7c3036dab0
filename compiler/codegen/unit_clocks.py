"""Approximate times at which the units are free, from emitted instructions without tokens."""

from __future__ import annotations

import numpy as np

from accel.compiler.codegen.scratchpad_spans import Span, Spans
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config
from accel.core.isa import Loops, Store
from accel.core.scratchpad_specs import INP, WGT
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, compute_depth, store_depth


class Clocks:
    """Clocks of the units, in cycles."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.load = self.computed = self._stored = 0.0
        self._read_until = {memory: np.zeros(memory.depth(config)) for memory in (INP, WGT)}
        """For each element, when the last computation that reads it retires."""
        self._loaded_at = {memory: np.zeros(memory.depth(config)) for memory in (INP, WGT)}
        """For each element, when its last LOAD retires."""
        self._stored_at = np.zeros(config.acc_depth)
        """For each accumulator, when its last STORE retires."""

    @property
    def end(self) -> float:
        return max(self.load, self.computed, self._stored)

    def bus_cycles(self, span: Span) -> float:
        return (span.end - span.begin) * span.memory.element_bytes(self.config) / self.config.bus_bytes

    def free_at(self, span: Span) -> float:
        return float(self._read_until[span.memory][span.begin : span.end].max(initial=0.0))

    def advance_load(self, span: Span) -> None:
        self.load = max(self.load, self.free_at(span)) + self.bus_cycles(span)
        written = self.load + REQUEST_STARTUP + self.config.read_latency + WRITE_DELAY
        self._loaded_at[span.memory][span.begin : span.end] = written

    def advance(self, one: Emitted, spans: Spans) -> None:
        """Instructions of other units than compute and store take no time here."""
        config, instruction = self.config, one.instruction
        if isinstance(instruction, Loops):
            self._advance_compute(one, instruction, spans)
        elif isinstance(instruction, Store):
            begin, end = instruction.sram_base, instruction.sram_base + instruction.sram_elements
            start = max(self._stored, self.computed + compute_depth(config) + store_depth(config))
            self._stored = start + (end - begin) * config.out_element_bytes / config.bus_bytes
            self._stored_at[begin:end] = self._stored + config.write_latency

    def _advance_compute(self, one: Emitted, loops: Loops, spans: Spans) -> None:
        read = spans.read(one)
        for _, begin, end in spans.written(one):
            self.computed = max(self.computed, float(self._stored_at[begin:end].max(initial=0.0)))
        for memory, begin, end in read:
            self.computed = max(self.computed, float(self._loaded_at[memory][begin:end].max(initial=0.0)))
        self.computed += loops.iter_out * loops.iter_in * len(one.uops)
        for memory, begin, end in read:
            self._read_until[memory][begin:end] = self.computed + compute_depth(self.config)
