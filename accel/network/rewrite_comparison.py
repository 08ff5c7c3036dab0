"""The cost of a compiled network, to compare the graph of a search with the graph without the search.

Searches predict the cost of graphs before layouts are known. The compiled programs are simulated, so their
cycles are exact. Only the host and the switches to it are predictions.
"""

from accel.network.chained_program import Chain
from accel.network.host_regions import host_regions
from accel.network.network_program import NetworkProgram
from accel.network.predicted_cost import host_cost, switch_cycles
from accel.rewriting.search_result import CompiledCost
from accel.run.measured_plans import simulated_cycles


def compiled_cost(program: NetworkProgram) -> CompiledCost:
    """Return simulated cycles of the programs, plus predicted cycles of the host and of switches to it."""
    graph, config = program.graph, program.config
    count = len(program.chains)
    cycles = count * switch_cycles(config)
    for step in host_regions(graph, program.steps):
        if isinstance(step, Chain):
            cycles += simulated_cycles(step.program)
        else:
            cycles += sum(host_cost(graph, part.fused, config, switches=False).cycles for part in step.parts)
    return CompiledCost(cycles=cycles, programs=count)
