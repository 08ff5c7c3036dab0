"""Compare explorers on spaces of schedules that are enumerated in full, so that the optimum is known.

    python bench/tuning.py enumerate FOLDER [--space NAME] [--jobs N]
    python bench/tuning.py FOLDER [--space NAME] [--explorer NAME] [--seeds N] [--json]

``enumerate`` measures every valid point of each space once, and appends it to a file in FOLDER. It continues
after an interruption. The second command replays the explorers on these files, which takes no measurement.

| column | meaning |
|---|---|
| points | valid points |
| optimum | fewest cycles of all points |
| within 1 % | share of the points whose cycles exceed the optimum by at most 1 % |
| expected | trials that sampling without replacement needs on average, from this share |
| median, worst | trials until a point within 1 % is measured, over the seeds |
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from tuning_spaces import SPACES

import accel
from accel.run.tuning_records import Record, append_records, load_records, record_key
from accel.tuning.measurement import Measurer
from accel.tuning.search_space import Point, SearchSpace, make_space

_CHUNK = 64
"""Points that are appended to a file together."""


def space_of(name: str) -> SearchSpace:
    target, machine = SPACES[name]
    return make_space(target, accel.machine(machine))


def enumerate_space(name: str, file: Path, jobs: int) -> None:
    """Measure the points that a file lacks."""
    space = space_of(name)
    key = record_key(space.name, space.source, space.config)
    known = {space.point(one.knobs) for one in load_records(file, missing_ok=True).of(key)}
    missing = [point for point in space.valid_points or () if point not in known]
    begin = time.perf_counter()
    with Measurer(space.outputs, space.config, jobs) as measurer:
        for at in range(0, len(missing), _CHUNK):
            points = missing[at : at + _CHUNK]
            outcomes = dict(measurer.measure([space.schedule(point) for point in points]))
            append_records(
                file,
                [
                    Record(
                        key=key,
                        cycles=outcomes[n].cycles,
                        error=outcomes[n].error,
                        knobs=space.choices(point),
                        features=space.features(point),
                    )
                    for n, point in enumerate(points)
                ],
            )
            space.forget()
            done = at + len(points)
            seconds = time.perf_counter() - begin
            print(f"{name}: {done:,} of {len(missing):,}, {done / seconds:.1f} per second", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--space", action="append", choices=SPACES)
    parser.add_argument("--jobs", type=int, default=1)
    o = parser.parse_args()
    for name in o.space or SPACES:
        enumerate_space(name, o.folder / f"{name}.jsonl", o.jobs)


if __name__ == "__main__":
    main()
