"""Small search spaces for tests."""

from typing import Any

from accel.explore import ExplorationSpec, make_exploration

GEMM = {"name": "gemm", "M": 16, "N": 16, "K": 16, "shift": 8}


def small(**changes: Any) -> ExplorationSpec:
    """A space of 36 machines, of which some are infeasible, with a product of 16 x 16 x 16."""
    data: dict[str, Any] = {
        "config": "tiny",
        "sampler": "exhaustive",
        "trials": 100,
        "objectives": ["cycles", "block_rams"],
        "constraints": ["block_in * block_out <= 64"],
        "field": {
            "block_in": {"powers_of_two": [4, 16]},
            "block_out": {"powers_of_two": [4, 16]},
            "wgt_bytes": {"powers_of_two": ["1KiB", "8KiB"]},
        },
        "limit": {"multipliers": 100},
        "workload": [GEMM],
    }
    return make_exploration({name: value for name, value in (data | changes).items() if value is not None})
