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
from accel.tuning.cost_model import Group
from accel.tuning.explorers import EXPLORERS, WITH_RECORDS, Trial, make_explorer
from accel.tuning.measurement import Measurer
from accel.tuning.search_space import Point, SearchSpace, make_space

_TOLERANCE = 0.01
"""Share by which the cycles of a good point may exceed the optimum."""
_BATCH = 8
"""Points that explorers propose at once."""
_WARM = 256
"""Points of each other space that warm-started explorers know."""
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


class Replay:
    """An enumerated space, on which explorers are replayed.

    Attributes:
        cycles: cycles of each valid point, or None where the schedule is invalid.
        good: points within 1 % of the optimum.
    """

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self.space = space_of(name)
        key = record_key(self.space.name, self.space.source, self.space.config)
        self.cycles: dict[Point, int | None] = {}
        features: dict[Point, dict[str, float] | None] = {}
        for one in load_records(file).of(key):
            point = self.space.point(one.knobs)
            assert point is not None
            self.cycles[point] = one.cycles
            features[point] = one.features
        missing = set(self.space.valid_points or ()) - self.cycles.keys()
        if missing:
            raise SystemExit(f"{file} lacks {len(missing):,} points of {name}; enumerate measures them")
        self.space.provide_features(features)
        self.optimum = min(cycles for cycles in self.cycles.values() if cycles is not None)
        limit = self.optimum * (1 + _TOLERANCE)
        self.good = {point for point, cycles in self.cycles.items() if cycles is not None and cycles <= limit}

    def summary(self) -> dict[str, Any]:
        """Return the figures of the space."""
        valid = sum(cycles is not None for cycles in self.cycles.values())
        return {
            "space": self.name,
            "machine": self.space.config.name,
            "combinations": self.space.size,
            "points": valid,
            "invalid": len(self.cycles) - valid,
            "optimum": self.optimum,
            "good": len(self.good),
            "expected": (len(self.cycles) + 1) / (len(self.good) + 1),
            "rank_correlation": self._rank_correlation(),
            "default": self._default(),
        }

    def _rank_correlation(self) -> float:
        pairs = [
            (predicted, cycles)
            for point, cycles in self.cycles.items()
            if cycles is not None and (predicted := self.space.predicted(point)) is not None
        ]
        ranks = [np.unique(column, return_inverse=True)[1] for column in zip(*pairs, strict=True)]
        return float(np.corrcoef(*ranks)[0, 1])

    def _default(self) -> int | None:
        return None if self.space.default_point is None else self.cycles[self.space.default_point]

    def trials(self, explorer: str, seed: int, earlier: list[Group]) -> int:
        """Return the number of trials until a point within 1 % of the optimum is measured."""
        search = make_explorer(explorer, self.space, seed, earlier)
        done: list[Trial] = []
        while points := search.propose(done, _BATCH):
            for point in points:
                done.append(Trial(point=point, cycles=self.cycles[point]))
                if point in self.good:
                    return len(done)
        return len(self.cycles)

    def group(self) -> Group:
        """Return features and cycles of a sample of points, as records of an earlier search."""
        points = sorted(point for point, cycles in self.cycles.items() if cycles is not None)
        chosen = np.random.default_rng(0).choice(len(points), min(_WARM, len(points)), replace=False)
        found = []
        for n in sorted(chosen.tolist()):
            features, cycles = self.space.features(points[n]), self.cycles[points[n]]
            if features is not None and cycles is not None:
                shared = {name: value for name, value in features.items() if not name.startswith("knob ")}
                found.append((shared, cycles))
        return found


def compare(replays: list[Replay], explorers: list[str], seeds: int) -> list[dict[str, Any]]:
    """Return a row for each space and explorer. Explorers ``+records`` have records of the other spaces."""
    rows = []
    for replay in replays:
        others = [one.group() for one in replays if one is not replay]
        for explorer in explorers:
            begin = time.process_time()
            count = 1 if explorer in ("model", "exhaustive") else seeds
            found = [replay.trials(explorer, seed, others) for seed in range(count)]
            rows.append(
                {
                    "space": replay.name,
                    "explorer": explorer,
                    "median": float(np.median(found)),
                    "worst": max(found),
                    "trials": found,
                    "seconds": time.process_time() - begin,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=("enumerate",))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--space", action="append", choices=SPACES)
    parser.add_argument(
        "--explorer",
        action="append",
        choices=EXPLORERS,
        help="by default all; those with records know a sample of the other spaces",
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = options.space or list(SPACES)
    if options.command == "enumerate":
        options.folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            enumerate_space(name, options.folder / f"{name}.jsonl", options.jobs)
        return
    replays = [Replay(name, options.folder / f"{name}.jsonl") for name in names]
    is_warm = len(names) > 1
    explorers = options.explorer or [one for one in EXPLORERS if is_warm or not one.endswith(WITH_RECORDS)]
    summaries = [one.summary() for one in replays]
    rows = compare(replays, explorers, options.seeds)
    if options.json:
        print(json.dumps({"spaces": summaries, "rows": rows}, indent=2))
        return
    for one in summaries:
        share = one["good"] / one["points"]
        default = "" if one["default"] is None else f", default {one['default']:,}"
        print(
            f"{one['space']} on {one['machine']}: {one['points']:,} points, "
            f"optimum {one['optimum']:,}{default}, "
            f"{one['good']} within 1 % ({share:.2%}), expected {one['expected']:.0f}, rank correlation of "
            f"the model {one['rank_correlation']:.2f}"
        )
    print(f"{'space':<14}{'explorer':<20}{'median':>8}{'worst':>8}{'seconds':>9}")
    for row in rows:
        print(
            f"{row['space']:<14}{row['explorer']:<20}{row['median']:>8.0f}{row['worst']:>8}{row['seconds']:>9.1f}"
        )


if __name__ == "__main__":
    main()
