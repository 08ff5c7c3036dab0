"""The comparison of the compiled networks with and without a search."""

from collections.abc import Callable, Sequence

from accel.base.records import replace
from accel.graph.graph import Graph
from accel.network.chained_program import Chain
from accel.network.host_regions import host_regions
from accel.network.network_program import NetworkProgram
from accel.network.predicted_cost import host_cost, switch_cycles
from accel.rewriting.graph_comparison import compare_graphs
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import simplify
from accel.rewriting.search_result import CompiledComparison, CompiledCost, SearchResult
from accel.run.measured_plans import simulated_cycles


def compiled_cost(program: NetworkProgram) -> CompiledCost:
    graph, config = program.graph, program.config
    count = len(program.chains)
    cycles = count * switch_cycles(config)
    for step in host_regions(graph, program.steps):
        if isinstance(step, Chain):
            cycles += simulated_cycles(step.program)
        else:
            cycles += sum(host_cost(graph, part.fused, config, switches=False).cycles for part in step.parts)
    return CompiledCost(cycles=cycles, programs=count)


def faster_network(
    given: Graph,
    found: SearchResult,
    rules: Sequence[Rule],
    compile_graph: Callable[[Graph], NetworkProgram],
) -> NetworkProgram:
    """If the search found the graph ``given``, only that is compiled. The user's ``rules`` that simplify are
    also applied to the graph without the search.

    Raises:
        MismatchError: the graph without the search computes other values.
    """
    searched = compile_graph(found.graph)
    if found.graph is given:
        return replace(searched, rewriting=found)
    unsearched, counts = simplify(given, rules)
    if counts:
        compare_graphs(given, unsearched)
    greedy = compile_graph(unsearched)
    compared = CompiledComparison(searched=compiled_cost(searched), greedy=compiled_cost(greedy))
    if compared.keeps_search:
        return replace(searched, rewriting=replace(found, compiled=compared))
    return replace(greedy, rewriting=replace(found, compiled=compared, graph=unsearched))
