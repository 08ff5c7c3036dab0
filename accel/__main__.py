"""``accel`` and ``python -m accel``: the command line. Little is imported before interrupts are seen to."""

import sys

from accel.base.interrupts import EXIT_INTERRUPTED, end_at_interrupt, ended_by_interrupt


def main() -> None:
    """Entry point; ends the process with the exit code, 130 whenever it is interrupted."""
    try:
        with ended_by_interrupt():
            from accel.cli.app import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    finally:
        end_at_interrupt()  # all is said, and the interpreter would put tracebacks behind it


if __name__ == "__main__":
    main()
