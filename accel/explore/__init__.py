"""Explorations: sweeps over machines whose points a sampler proposes.

``load_exploration`` reads a search space, and ``explore`` returns an ``Exploration`` with all points and the
Pareto front.
"""

from accel.explore.exploration_result import Exploration
from accel.explore.exploration_runner import explore
from accel.explore.placement_tasks import PlacementOptions
from accel.explore.space_file import ExplorationSpec, load_exploration, make_exploration

__all__ = [
    "Exploration",
    "ExplorationSpec",
    "PlacementOptions",
    "explore",
    "load_exploration",
    "make_exploration",
]
