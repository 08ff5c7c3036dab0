"""Options and Hypothesis profiles of the whole suite.

The default profile draws the same examples every time. ``--hypothesis-profile=fuzz`` draws fresh ones,
fifty times as many.
"""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import tools

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_PHASES = [Phase.explicit, Phase.generate, Phase.shrink]

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    phases=_PHASES,
    suppress_health_check=_QUIET,
)
settings.register_profile(
    "fuzz", settings.get_profile("ci"), derandomize=False, max_examples=50 * settings().max_examples
)
settings.load_profile("ci")


def pytest_configure() -> None:
    """Refuse to require a tool that no test asks for; programs that tests start hear Ctrl-C."""
    tools.required()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line says which tools were missed."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    reasons = {str(report.longrepr[2]) for report in reporter.stats.get("skipped", [])}
    missed = sorted(r.partition(tools.MISSING)[2] for r in reasons if tools.MISSING in r)
    if missed:
        reporter.write_line(f"Tests were skipped for want of {', '.join(missed)}.", yellow=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--vectors",
        metavar="DIR",
        default=os.environ.get("ACCEL_VECTORS"),
        help="folder of conformance vectors, one program in each folder below it ($ACCEL_VECTORS)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each vector; without a folder a single one, skipped."""
    if "vector" not in metafunc.fixturenames:
        return
    folder = metafunc.config.getoption("--vectors")
    if folder is None:
        reason = "no conformance vectors: give their folder by --vectors=DIR or ACCEL_VECTORS"
        metafunc.parametrize("vector", [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="none")])
        return
    root = Path(folder)
    found = sorted(path.parent for path in root.glob("**/insn.bin"))
    if not found:
        raise pytest.UsageError(f"--vectors is {folder!r}; no folder below it holds a program (insn.bin)")
    metafunc.parametrize("vector", found, ids=[str(path.relative_to(root)) for path in found])
