"""The compilation of a network: its graph is rewritten, prepared, placed and compiled."""

import os
import time
from collections.abc import Sequence

from accel.base.arguments import check_integer
from accel.base.errors import GraphError, ScheduleError
from accel.base.records import replace
from accel.base.rewrite_choices import SEARCHES_BY_COST, Search, check_search
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.network.function_parts import with_reasons
from accel.network.graph_preparation import PreparedGraph, prepare_graph
from accel.network.network_program import NetworkProgram
from accel.network.network_steps import build_steps
from accel.network.placement import check_strict, place
from accel.rewriting.rule import Rule
from accel.rewriting.search_result import SearchLimits, SearchResult
from accel.run.measured_plans import simulated_cycles
from accel.run.tuning_records import load_records


def build_network(
    graph: Graph,
    on: Machine | Config | str,
    *,
    rewriting: SearchResult | None,
    strict: bool,
    approximate: bool,
    keep: bool,
    fusion: bool,
    measure: int | None,
    tuned: str | os.PathLike[str] | None,
    rewrite: Search,
    rules: Sequence[Rule],
    relaxation: float,
    limits: SearchLimits | None,
    jobs: int,
) -> NetworkProgram:
    """Compile a graph, as :meth:`accel.Network.build`."""
    target = machine(on)
    processes = check_integer("jobs", jobs, least=1)
    measured_plans = None if measure is None else check_integer("measure", measure, error=ScheduleError)
    records = None if tuned is None else load_records(tuned)
    begin = time.perf_counter()
    check_search(rewrite)
    if rules and rewrite == "none":
        raise GraphError("rules are given and rewrite is 'none'; another search must apply them")
    found: SearchResult | None = None
    if rules or rewrite in SEARCHES_BY_COST:
        from accel.network.graph_rewriting import rewrite_graph  # most networks need no search
        from accel.rewriting.rules import RULES

        found = rewrite_graph(
            graph,
            target.config,
            search=rewrite,
            rules=rules if rewrite == "greedy" else (*rules, *RULES),
            approximate=approximate,
            fusion=fusion,
            relaxation=relaxation,
            limits=limits,
        )

    def compile_network(prepared: PreparedGraph, measure: int | None) -> NetworkProgram:
        parts, choices = place(
            prepared.graph,
            prepared.groups,
            target,
            approximate=approximate,
            measure=measure,
            records=records,
            jobs=processes,
        )
        parts = with_reasons(parts, prepared.divisions)
        if strict:
            check_strict(prepared.graph, parts)
        built = build_steps(prepared.graph, parts, target.config, keep=keep, jobs=processes)
        return NetworkProgram(
            graph=prepared.graph,
            config=target.config,
            choices=(*prepared.divisions, *choices),
            moves=prepared.moves,
            rewriting=rewriting,
            **built,
        )

    def compile_graph(graph: Graph) -> NetworkProgram:
        prepared = prepare_graph(graph, target.config, fusion=fusion, rewrites=rewrite != "none")
        program = compile_network(prepared, measured_plans)
        if measured_plans is not None:
            program = min(program, compile_network(prepared, None), key=_total_cycles)
        return program

    if found is None:
        program = compile_graph(graph)
    elif rewrite in SEARCHES_BY_COST:
        from accel.network.rewrite_comparison import faster_network

        program = faster_network(graph, found, rules, compile_graph)
    else:
        program = replace(compile_graph(found.graph), rewriting=found)
    return replace(program, compile_seconds=time.perf_counter() - begin)


def _total_cycles(program: NetworkProgram) -> int:
    return sum(simulated_cycles(chain.program) for chain in program.chains)
