"""The choice of fusion and placement with the fewest predicted cycles.

Nodes that multiply run on the machine if it supports them. Of equal alternatives, the one with fewer pieces
wins.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from msgspec import Struct

from accel.base.errors import ScheduleError, ShapeError
from accel.base.forked_tasks import run_tasks
from accel.base.records import replace
from accel.compiler.operators.default_schedule import planner_of
from accel.compiler.plans.planner import PlanKey, known_plans, remember_plans
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.network.cost import ZERO_COST, Cost
from accel.network.fused_nodes import FusedNodes
from accel.network.fusion_candidates import FusionGroup
from accel.network.fusion_report import Alternative, FusionChoice
from accel.network.host_inputs import choose_layer_mapping, host_packs_data
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.lowering_table import lower
from accel.network.network_part import Where
from accel.network.predicted_cost import host_cost, least_machine_cost, machine_cost

_MAX_REPORTED = 6
"""In addition to the fastest alternative without fusion."""
_MIN_SAVING = 0.005
"""Plans are searched for alternatives that may save this share of the cycles of one with searched plans."""


class PlacementOption(Struct, frozen=True, kw_only=True):
    fused: FusedNodes
    layer: LoweredLayer | None = None
    unsupported: str = ""

    @property
    def where(self) -> Where:
        return "host" if self.layer is None else "machine"

    @property
    def reason(self) -> str:
        if self.layer is not None:
            return ""
        return self.unsupported or "the host is predicted to take fewer cycles"


class _Candidate(Struct, frozen=True, kw_only=True):
    cost: Cost
    options: tuple[PlacementOption, ...]
    is_unfused: bool

    def report(self) -> Alternative:
        suffix = {"machine": "", "host": " on the host"}
        stages = tuple(f"{one.fused.operators()}{suffix[one.where]}" for one in self.options)
        return Alternative(stages=stages, cost=self.cost, is_unfused=self.is_unfused)


class _Refusal(Struct, frozen=True, kw_only=True):
    fused: FusedNodes
    reason: str
    alternative: Alternative


class _Placements(Struct, frozen=True, kw_only=True):
    """Without ``options``, only the machine could fuse the nodes, and does not support it.

    Attributes:
        form: of the layer whose plans have not been searched, so that ``cost`` is a bound, or None.
    """

    options: list[PlacementOption]
    unsupported: str = ""
    cost: Cost = ZERO_COST
    form: Hashable = None


class FusionChooser:
    """Chooses alternatives, and caches costs.

    A search for plans takes long. So a layer's cost is a lower bound at first. The plans of a layer are
    searched if an alternative with this layer could be the best one of its group.
    """

    def __init__(self, graph: Graph, config: Config, *, approximate: bool) -> None:
        self._graph = graph
        self._config = config
        self._approximate = approximate
        self._known: dict[tuple[str, ...], _Placements] = {}
        self._layers: dict[tuple[str, ...], LoweredLayer] = {}
        self._searched: set[Hashable] = set()
        """Forms of layers whose plans have been searched. Layers of one form have equal plans."""

    def search_plans(self, groups: Sequence[FusionGroup], jobs: int = 1) -> None:
        """Search plans in several processes until the cost of each group's best alternative is no bound."""
        while True:
            guessed: dict[Hashable, LoweredLayer] = {}
            unfinished = []
            for group in groups:
                best = _ranked(self._alternatives(group)[0])[0]
                if best.cost.is_bound:
                    unfinished.append(group)
                    guessed |= self._guessed(best)
            if not guessed:
                return
            self._search(list(guessed.values()), jobs)
            self._searched.update(guessed)
            groups = unfinished

    def _guessed(self, candidate: _Candidate) -> dict[Hashable, LoweredLayer]:
        layers = [(self._placements(one.fused).form, one.layer) for one in candidate.options]
        return {form: layer for form, layer in layers if form is not None and layer is not None}

    def _search(self, layers: Sequence[LoweredLayer], jobs: int) -> None:
        def search(number: int) -> dict[PlanKey, Any]:
            before = set(known_plans())
            with suppress(ScheduleError, ShapeError):
                choose_layer_mapping(self._graph, layers[number], self._config)
            return {key: plans for key, plans in known_plans().items() if key not in before}

        for plans in run_tasks(search, len(layers), jobs):
            remember_plans(plans)

    def choose(self, group: FusionGroup) -> tuple[tuple[PlacementOption, ...], FusionChoice]:
        """Return the best alternative, in an order of execution, and a report."""
        self.search_plans([group])
        candidates, refusals = self._alternatives(group)
        ranked = _ranked(candidates)
        best = ranked[0]
        fastest_unfused = next((one for one in ranked if one.is_unfused), None)
        reported = [one for n, one in enumerate(ranked) if n < _MAX_REPORTED or one is fastest_unfused]
        choice = FusionChoice(
            name=", ".join(fused.name for fused in group.alternatives[0]),
            alternatives=(
                *(one.report() for one in reported),
                *(one.alternative for one in refusals[:_MAX_REPORTED]),
            ),
        )
        return tuple(_with_reason(option, best.options, refusals) for option in best.options), choice

    def _alternatives(self, group: FusionGroup) -> tuple[list[_Candidate], list[_Refusal]]:
        candidates: list[_Candidate] = []
        refusals: list[_Refusal] = []
        for pieces in group.alternatives:
            is_unfused = pieces is group.unfused
            unsupported = next((one for one in pieces if not self._placements(one).options), None)
            if unsupported is not None:
                reason = self._placements(unsupported).unsupported
                names = tuple(one.operators() for one in pieces)
                report = Alternative(stages=names, cost=None, refused=reason, is_unfused=is_unfused)
                refusals.append(_Refusal(fused=unsupported, reason=reason, alternative=report))
                continue
            for options in product(*(self._placements(one).options for one in pieces)):
                cost = sum(self._costs(options), ZERO_COST)
                candidates.append(_Candidate(cost=cost, options=options, is_unfused=is_unfused))
        return candidates, refusals

    def cost(self, fused: FusedNodes) -> Cost:
        return self._placements(fused).cost

    def refuse(self, option: PlacementOption, reason: str) -> None:
        fused = option.fused
        self._known[_key(fused)] = _Placements(options=_on_host(fused, reason), unsupported=reason)

    def _placements(self, fused: FusedNodes) -> _Placements:
        key = _key(fused)
        found = self._known.get(key)
        if found is None or found.form in self._searched:
            found = self._known[key] = self._find_placements(fused)
        return found

    def _find_placements(self, fused: FusedNodes) -> _Placements:
        try:
            layer = self._lowered(fused)
            workload = layer.workload()
            features = planner_of(workload).features(workload, self._config)
            form: Hashable = layer.operator, features, host_packs_data(self._graph, layer)
            is_searched = form in self._searched
            cost = least_machine_cost(self._graph, fused, layer, self._config)
            if is_searched:
                predicted = machine_cost(self._graph, fused, layer, self._config)
                cost = replace(predicted, cycles=max(predicted.cycles, cost.cycles))
        except (NotOnMachine, ScheduleError, ShapeError) as error:
            return _Placements(options=_on_host(fused, str(error)), unsupported=str(error))
        options = [PlacementOption(fused=fused, layer=layer)]
        if not fused.macs(self._graph):
            options += _on_host(fused, "")
        return _Placements(options=options, cost=cost, form=None if is_searched else form)

    def _lowered(self, fused: FusedNodes) -> LoweredLayer:
        layer = self._layers.get(_key(fused))
        if layer is None:
            layer = lower(self._graph, fused, approximate=self._approximate)
            layer.check_machine(self._config)
            self._layers[_key(fused)] = layer
        return layer

    def _costs(self, options: Sequence[PlacementOption]) -> Iterator[Cost]:
        computed_on_host: set[str] = set()
        for option in options:
            if option.layer is not None:
                yield self._placements(option.fused).cost
                continue
            switches = computed_on_host.isdisjoint(option.fused.inputs)
            yield host_cost(self._graph, option.fused, self._config, switches=switches)
            computed_on_host.add(option.fused.output)


def _ranked(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return candidates by cycles. Bounds that would save little come after the first cost that is none."""
    ordered = sorted(candidates, key=lambda one: (one.cost.cycles, len(one.options)))
    exact = next((one for one in ordered if not one.cost.is_bound), None)
    if exact is None or ordered[0].cost.cycles < exact.cost.cycles * (1 - _MIN_SAVING):
        return ordered
    return [exact, *(one for one in ordered if one is not exact)]


def _key(fused: FusedNodes) -> tuple[str, ...]:
    return tuple(node.output for node in fused.nodes)


def _on_host(fused: FusedNodes, unsupported: str) -> list[PlacementOption]:
    return [PlacementOption(fused=fused, unsupported=unsupported)] if len(fused.nodes) == 1 else []


def _with_reason(
    option: PlacementOption, chosen: Sequence[PlacementOption], refusals: Sequence[_Refusal]
) -> PlacementOption:
    if option.layer is not None:
        return option
    mains = [other.fused.name for other in chosen if other.layer is not None]
    for refusal in refusals:
        if refusal.fused.combination is option.fused.main and refusal.fused.name in mains:
            return PlacementOption(fused=option.fused, unsupported=refusal.reason)
    return option
