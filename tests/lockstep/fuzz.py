"""``make fuzz``: run random programs on simulator and hardware until the time is up.

Prints programs per second. After a difference, a file holds the minimized program.
"""

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from accel.assembly import disassemble
from accel.base.errors import AccelError
from accel.cli.shared_options import named_values
from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.run.lockstep import Difference, Lockstep, lockstep
from tests.lockstep.builds import BUILDS, built
from tests.lockstep.cases import Case, cases

FOLDER = Path("fuzz")
_ROUND = 100
"""Programs between two checks of the time."""
_REPORT_SECONDS = 10.0
_APART = 1 << 32
"""Distance between the first seeds of two processes, which exceeds the number of rounds."""


class Fuzzer:
    """Progress of one process."""

    def __init__(self, builds: Mapping[str, Config], seconds: float, hostile: bool) -> None:
        self.builds = builds
        self.begin = time.monotonic()
        self.end = self.begin + seconds
        self.hostile = hostile
        self.programs = 0
        self.cycles = 0
        self.scopes: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        self.failure: tuple[Case, Difference] | None = None
        self._reported = self.begin

    def run(self, first_seed: int) -> bool:
        """Run until the time is up or a difference is found; return whether all runs were equal."""
        for number in range(sys.maxsize):
            if time.monotonic() >= self.end:
                return True
            if not self.run_round(first_seed + number):
                return False
            if time.monotonic() - self._reported >= _REPORT_SECONDS:
                self._reported = time.monotonic()
                print(self.summary(), flush=True)
        return True

    def run_round(self, number: int) -> bool:
        """Run a hundred programs, and return whether all runs were equal."""
        try:
            self._round(number)
        except AssertionError:
            return False
        return True

    def _round(self, number: int) -> None:
        @seed(number)
        @settings(
            max_examples=_ROUND,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        @given(cases(self.builds))
        def compare(case: Case) -> None:
            found = self.compare(case)
            if found.difference is not None:
                self.failure = (case, found.difference)
            assert found.equal

        compare()

    def compare(self, case: Case) -> Lockstep:
        found = lockstep(
            case.program,
            built(case.config),
            seed=case.seed,
            max_cycles=case.max_cycles,
            hostile=self.hostile,
        )
        self.programs += 1
        self.cycles += found.cycles
        self.scopes[found.scope.value] += 1
        self.causes[found.cause.label] += 1
        return found

    def summary(self) -> str:
        seconds = time.monotonic() - self.begin
        speed = self.programs / max(seconds, 1e-9)
        return f"{self.programs:,} programs, {self.cycles:,} cycles, {speed:.1f} programs per second"


def reproducer(case: Case, difference: Difference, folder: Path) -> Path:
    """Write the program of a difference as assembly, with the command that reproduces it."""
    folder.mkdir(parents=True, exist_ok=True)
    number = next(n for n in range(sys.maxsize) if not (folder / f"difference_{n}.s").exists())
    path = folder / f"difference_{number}.s"
    command = f"accel lockstep {path} --seed {case.seed} --max-cycles {case.max_cycles}"
    heading = [f"# {command}", f"# {difference.message}"]
    heading += [f"#   simulator {line}" for line in difference.sim]
    heading += [f"#   hardware  {line}" for line in difference.rtl]
    path.write_text("\n".join(heading) + "\n\n" + disassemble(case.program))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--build", choices=BUILDS, help="this hardware alone; all of them if not given")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="change a field of the hardware"
    )
    parser.add_argument("--seed", type=int, default=None, help="of the first round; the clock's if not given")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with seeds of its own")
    parser.add_argument("--hostile", action="store_true", help="memory answers late and refuses at random")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for reproducers")
    options = parser.parse_args()
    names = [options.build] if options.build else list(BUILDS)
    try:
        changes = named_values("--set", options.set, "FIELD=VALUE, as inp_banks=8")
        builds = {name: BUILDS[name].override(changes) for name in names}
    except AccelError as error:
        parser.error(str(error))
    first_seed = int(time.time() * 1000) if options.seed is None else options.seed
    if options.jobs > 1:
        return _several(options, builds, first_seed)
    fuzzer = Fuzzer(builds, options.seconds, options.hostile)
    equal = fuzzer.run(first_seed)
    print(fuzzer.summary())
    print("compared: " + ", ".join(f"{count:,} {name}" for name, count in fuzzer.scopes.most_common()))
    print("ended: " + ", ".join(f"{count:,} {_ending(name)}" for name, count in fuzzer.causes.most_common()))
    if equal or fuzzer.failure is None:
        return 0
    path = reproducer(*fuzzer.failure, options.folder)
    print(f"DIFFERENT: {fuzzer.failure[1].message}\nthe program is in {path}")
    return 1


def _several(options: argparse.Namespace, builds: Mapping[str, Config], first_seed: int) -> int:
    """Run this command in several processes; return 1 if one of them found a difference.

    The hardware is built first. The output of each process is printed in one piece.
    """
    for config in builds.values():
        built(config)
    command = [sys.executable, "-m", "tests.lockstep.fuzz", "--seconds", str(options.seconds)]
    command += ["--folder", str(options.folder), *(["--hostile"] if options.hostile else [])]
    command += ["--build", options.build] if options.build else []
    for change in options.set:
        command += ["--set", change]
    seeds = [str(first_seed + number * _APART) for number in range(options.jobs)]
    running = [
        subprocess.Popen([*command, "--seed", seed], stdout=subprocess.PIPE, text=True) for seed in seeds
    ]
    for number, process in enumerate(running, 1):
        output, _ = process.communicate()
        print(f"process {number} of {options.jobs}:\n{output}", end="")
    return max(process.returncode for process in running)


def _ending(name: str) -> str:
    return "well" if name == Cause.NONE.label else name


if __name__ == "__main__":
    sys.exit(main())
