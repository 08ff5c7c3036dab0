"""From a change to a picture: what the studio's process takes for it, when it has done the like before.

Each state differs from the one before by a field of the machine, so that it is compiled and run anew.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

from accel.studio.view import Views
from accel.studio.worker import answer

CONV: dict[str, Any] = {"OC": 64, "IC": 64, "kernel": 3, "padding": 1, "bias": True, "relu": True, "shift": 8}
STATES: dict[str, dict[str, Any]] = {
    "gemm 128x128x128 on gemm8x8": {
        "workload": "gemm",
        "parameters": {"M": 128, "N": 128, "K": 128, "shift": 8},
        "machine": "gemm8x8",
    },
    "conv2d 64x56x56, 3x3 on vta": {
        "workload": "conv2d",
        "parameters": CONV | {"H": 56, "W": 56},
        "machine": "vta",
    },
    "gemm 512x512x1024 on vta": {
        "workload": "gemm",
        "parameters": {"M": 512, "N": 512, "K": 1024, "shift": 8},
        "machine": "vta",
    },
}
"""What is looked at."""
TIMES = 5


def changes(state: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Processor seconds of each change, and the answer."""
    views = Views()
    for n in range(TIMES + 1):
        question = {"ask": "view", "state": {**state, "settings": {"read_latency": 64 + n}}, "files": {}}
        begin = time.process_time()
        text = answer(views, json.dumps(question))
        if n:  # the first one imports what it needs
            yield time.process_time() - begin, text


def main() -> None:
    """Print a table."""
    print("| state | cycles | instructions | processor time of a change | JSON |")
    print("|---|--:|--:|--:|--:|")
    for name, state in STATES.items():
        found = list(changes(state))
        figures = json.loads(found[0][1])["view"]["figures"]
        seconds = sorted(one for one, _ in found)[TIMES // 2]
        print(
            f"| {name} | {figures['cycles']:,} | {figures['instructions']:,} | {seconds:.2f} s | "
            f"{len(found[0][1]) / 1000:,.0f} kB |"
        )


if __name__ == "__main__":
    main()
