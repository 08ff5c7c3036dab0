"""``accel`` and ``python -m accel``: the command line. It handles interrupts before it imports much."""

import gc
import sys

from accel.base.interrupts import EXIT_INTERRUPTED, end_at_interrupt, ended_by_interrupt

GC_THRESHOLDS = 1_000_000, 50, 100
"""Imports and compilations make millions of objects and hardly any cycles, so Python's defaults cost a
tenth of their time."""


def main() -> None:
    """End the process with the exit code, 130 if interrupted."""
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        with ended_by_interrupt():
            from accel.base.child_processes import end_programs_on_termination
            from accel.cli.app import main as run
        end_programs_on_termination()
        run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    finally:
        gc.freeze()  # Python would search all objects for garbage at its end, which takes 0.1 s
        end_at_interrupt()  # the interpreter would print a traceback while it shuts down


if __name__ == "__main__":
    main()
