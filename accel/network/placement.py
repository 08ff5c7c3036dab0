"""Placement: which nodes the machine executes, which the host, and why."""

from collections.abc import Sequence
from contextlib import suppress

from accel.base.errors import GraphError, ScheduleError, ShapeError
from accel.base.forked_tasks import run_tasks
from accel.compiler.mappings.mapped_build import compile_mapped
from accel.compiler.mappings.mapping_choice import MappingChoice
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.schedule.schedule_files import scheduled
from accel.compiler.target.machine import Machine
from accel.graph.graph import Graph
from accel.image.image import Image
from accel.network.fusion_candidates import FusionGroup
from accel.network.fusion_choice import FusionChooser
from accel.network.fusion_report import FusionChoice
from accel.network.host_inputs import choose_layer_mapping, host_packs_data
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.model_files import DEFAULT_MACHINE
from accel.network.network_part import QUANTIZE_HINT, NetworkPart, multiplies_float32
from accel.run.measured_plans import measure_plans, simulated_cycles
from accel.run.program import Program, as_program
from accel.run.tuning_records import Records, faster_record, record_key


class _LayerCompiler:
    def __init__(self, graph: Graph, machine: Machine, measure: int | None, records: Records | None) -> None:
        self._graph, self._machine, self._measure, self._records = graph, machine, measure, records
        self._known: list[tuple[LoweredLayer, Program, int]] = []

    def prepare(self, layers: Sequence[LoweredLayer], jobs: int) -> None:
        """Compile layers of different forms in several processes."""
        distinct: list[LoweredLayer] = []
        for layer in layers:
            if not any(self._has_form_of(layer, other) for other in distinct):
                distinct.append(layer)

        def compile_one(number: int) -> tuple[Program, int] | None:
            with suppress(NotOnMachine):
                return self._compile(distinct[number])
            return None

        for layer, compiled in zip(distinct, run_tasks(compile_one, len(distinct), jobs), strict=True):
            if compiled is not None:
                self._known.append((layer, *compiled))

    def program(self, layer: LoweredLayer) -> tuple[Program, int]:
        """Return a program, which equal layers share, and its cycles in isolation."""
        is_packed = host_packs_data(self._graph, layer)
        for other, program, cycles in self._known:
            is_equal = (other.operator, other.parameters) == (layer.operator, layer.parameters)
            if is_equal and host_packs_data(self._graph, other) == is_packed:
                return program, cycles
        program, cycles = self._compile(layer)
        self._known.append((layer, program, cycles))
        return program, cycles

    def _compile(self, layer: LoweredLayer) -> tuple[Program, int]:
        machine = self._machine
        try:
            choice = choose_layer_mapping(self._graph, layer, machine.config)
            if self._measure is not None:
                choice = measure_plans(choice, machine, self._measure)
            schedule = choice.schedule(machine)
            like = self._of_equal_form(layer, choice.mapping.name, schedule)
            image = compile_mapped(choice.mapping, schedule, machine.config, like=like)
            program = as_program(image)
        except (ScheduleError, ShapeError) as error:
            raise NotOnMachine(str(error)) from None
        best = choice.candidates[0]
        cycles = round(best.prediction.cycles) if best.simulated_cycles is None else best.simulated_cycles
        tuned = None if self._records is None else self._tuned(self._records, layer, choice, program)
        return (program, cycles) if tuned is None else tuned

    def _of_equal_form(self, layer: LoweredLayer, mapping: str, schedule: Schedule) -> Image | None:
        """Return the program of a known layer whose instructions differ in SETs only."""
        steps = list(schedule.steps)
        for other, program, _ in self._known:
            has_steps = program.source is not None and program.source.schedule == steps
            if has_steps and program.mapping == mapping and self._has_form_of(layer, other):
                return program
        return None

    def _has_form_of(self, layer: LoweredLayer, other: LoweredLayer) -> bool:
        """Whether instructions of equal schedules differ in SETs only.

        Layers without a bias must be equal, since constants contain their scales.
        """
        own, others = dict(layer.parameters), dict(other.parameters)
        if own.get("bias"):
            for parameters in (own, others):
                quantized = parameters.get("quantized")
                if isinstance(quantized, Quantized):
                    parameters["quantized"] = quantized.form
        return (layer.operator, own) == (other.operator, others)

    def _tuned(
        self, records: Records, layer: LoweredLayer, choice: MappingChoice, program: Program
    ) -> tuple[Program, int] | None:
        workload, machine = layer.workload(), self._machine
        outputs, mapping = [workload.output], choice.mapping.name
        if records.fastest(record_key(workload.name, outputs, machine.config), mapping) is None:
            return None
        cycles = simulated_cycles(program)
        record = faster_record(records, workload.name, outputs, machine.config, cycles, mapping)
        if record is None or record.steps is None or record.cycles is None:
            return None
        schedule = scheduled(choice.mapping.workload, machine, record.steps)
        return as_program(compile_mapped(choice.mapping, schedule, machine.config)), record.cycles


def place(
    graph: Graph,
    groups: Sequence[FusionGroup],
    machine: Machine,
    *,
    approximate: bool = False,
    measure: int | None = None,
    records: Records | None = None,
    jobs: int = 1,
) -> tuple[tuple[NetworkPart, ...], tuple[FusionChoice, ...]]:
    """Choose an alternative of each group, and compile its layers. Parts are in an order of execution.

    Args:
        records: those of ``tuned`` of :meth:`accel.Network.build`.
        jobs: processes.
    """
    if not machine.config.post:
        raise GraphError(
            f"{machine.config.label} has post=0; networks are compiled for machines with post=1, "
            f"as {DEFAULT_MACHINE}"
        )
    chooser = FusionChooser(graph, machine.config, approximate=approximate)
    compiler = _LayerCompiler(graph, machine, measure, records)
    chooser.search_plans(groups, jobs)
    if jobs > 1:
        options = [option for group in groups for option in chooser.choose(group)[0]]
        compiler.prepare([option.layer for option in options if option.layer is not None], jobs)
    parts: dict[str, NetworkPart] = {}
    choices: dict[str, FusionChoice] = {}
    for group in groups:
        placed, choice = _place_group(group, chooser, compiler)
        parts |= {part.fused.output: part for part in placed}
        if len(choice.alternatives) > 1:
            choices[placed[-1].fused.output] = choice
    order = [node.output for node in graph.nodes]
    return (
        tuple(parts[name] for name in order if name in parts),
        tuple(choices[name] for name in order if name in choices),
    )


def _place_group(
    group: FusionGroup, chooser: FusionChooser, compiler: _LayerCompiler
) -> tuple[list[NetworkPart], FusionChoice]:
    """If a layer does not compile, choose again without it."""
    while True:
        options, choice = chooser.choose(group)
        parts = []
        for option in options:
            program, cycles = None, None
            if option.layer is not None:
                try:
                    program, cycles = compiler.program(option.layer)
                except NotOnMachine as error:
                    chooser.refuse(option, str(error))
                    break
            parts.append(
                NetworkPart(
                    fused=option.fused,
                    where=option.where,
                    reason=option.reason,
                    layer=option.layer,
                    program=program,
                    mapping="" if program is None else program.mapping,
                    alone=cycles,
                )
            )
        else:
            return parts, choice


def check_strict(graph: Graph, parts: Sequence[NetworkPart]) -> None:
    """Raise a GraphError for multiplications on the host."""
    reasons = [
        f"{part.fused.name!r} ({part.fused.main.operator.kind}): {part.reason}"
        for part in parts
        if not part.on_machine and part.fused.macs(graph)
    ]
    if reasons:
        hint = f" ({QUANTIZE_HINT})" if multiplies_float32(graph, parts) else ""
        raise GraphError(f"the host would execute nodes that multiply{hint}: {'; '.join(reasons)}")
