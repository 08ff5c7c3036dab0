"""Changes of a graph before its placement."""

from msgspec import Struct

from accel.core.config import Config
from accel.formats.linear_resize import RESIZE_BY_PHASES
from accel.graph.byte_functions import fold_byte_functions
from accel.graph.graph import Graph
from accel.network.channel_assignment import assign_channel_maps
from accel.network.function_parts import divide_functions
from accel.network.fusion_candidates import FusionGroup, fusion_groups, unfused_groups
from accel.network.fusion_report import FusionChoice
from accel.network.move_choice import MoveChoice
from accel.rewriting.elementwise_rules import FUNCTION_BEFORE_REPEATS
from accel.rewriting.movement_rules import CONCAT_OF_SLICES, SHUFFLE_RULES
from accel.rewriting.product_rules import AVERAGE_BY_PARTS
from accel.rewriting.rule_application import apply_rules, simplify

ONE_ROW_RULES = (AVERAGE_BY_PARTS, RESIZE_BY_PHASES)
"""For machines whose elements have one row. Divided pictures cannot be stored in strips, from which machines
with several rows gain more.
"""


class PreparedGraph(Struct, frozen=True, kw_only=True):
    """``divisions`` are functions that became sums of functions."""

    graph: Graph
    groups: tuple[FusionGroup, ...]
    divisions: tuple[FusionChoice, ...]
    moves: tuple[MoveChoice, ...]


def prepare_graph(
    graph: Graph, config: Config, *, fusion: bool = True, rewrites: bool = True
) -> PreparedGraph:
    if rewrites:
        graph, _ = simplify(graph, [*SHUFFLE_RULES, CONCAT_OF_SLICES])
        if config.batch == 1:
            graph, _ = apply_rules(graph, ONE_ROW_RULES)
    if fusion and config.tab_bytes:
        graph = fold_byte_functions(graph)
    if rewrites:
        graph, _ = simplify(graph, [FUNCTION_BEFORE_REPEATS])
    graph, divisions = divide_functions(graph, config)
    graph, moves = assign_channel_maps(graph, config)
    groups = fusion_groups(graph) if fusion else unfused_groups(graph)
    return PreparedGraph(graph=graph, groups=groups, divisions=divisions, moves=moves)
