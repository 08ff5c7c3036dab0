"""The search for a better graph of a network."""

from collections.abc import Sequence

from accel.base.rewrite_choices import RELAXATION, SEARCHES_BY_COST, Search
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.network.graph_rewriting import rewrite_graph
from accel.network.model_files import DEFAULT_MACHINE
from accel.network.network import Network
from accel.network.rewrite_comparison import faster_network
from accel.rewriting.rule import Rule
from accel.rewriting.rules import RULES
from accel.rewriting.rules_file import checked_rules
from accel.rewriting.search_result import SearchLimits


def rewrite(
    network: Network,
    on: Machine | Config | str = DEFAULT_MACHINE,
    *,
    search: Search = "backtrack",
    rules: Sequence[Rule] = (),
    relaxation: float = RELAXATION,
    limits: SearchLimits | None = None,
    compare: bool = True,
) -> Network:
    """Search for an equal graph with fewer cycles on a machine.

    For example::

        faster = accel.rewrite(network, "gemm8x8-int8")
        print(faster.rewriting.describe())

    Args:
        on: as of :meth:`accel.Network.build`.
        search: ``greedy`` applies rules that simplify, ``backtrack`` searches in the order of cost, and
            ``saturate`` applies all rules at once and chooses afterwards.
        rules: further rules. Each is checked on 20 drawn graphs.
        relaxation: ``backtrack`` expands graphs that cost at most this multiple of the best. At least 1.
        compare: compile the graphs with and without ``backtrack`` or ``saturate``, and return the one with
            fewer cycles. Otherwise predicted cycles decide.

    Returns:
        The network with the new graph, and the report ``rewriting``. The outputs keep their names.

    Raises:
        ConfigError: there is no such machine.
        GraphError: the search is unknown, the relaxation is too small, or a rule cannot be used.
        MismatchError: the two sides of a rule differ, or the rewritten graph computes other values.
        AccelError: ``saturate`` needs packages that are not installed.
    """
    checked, target = checked_rules(rules), machine(on)
    found = rewrite_graph(
        network.graph,
        target.config,
        search=search,
        rules=(*checked, *RULES),
        relaxation=relaxation,
        limits=limits,
    )
    if compare and search in SEARCHES_BY_COST and found.graph is not network.graph:
        program = faster_network(
            network.graph, found, checked, lambda graph: Network(graph=graph).build(target)
        )
        assert program.rewriting is not None
        found = program.rewriting
    return Network(graph=found.graph, rewriting=found)
