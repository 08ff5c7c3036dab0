"""Options and Hypothesis profiles of the whole suite.

The default profile draws the same examples every time, a tenth of the number that tests request. The
remaining ones have never found anything else. ``--hypothesis-profile=whole`` draws all of them, and
``--hypothesis-profile=fuzz`` fifty times more, new ones each time. Tests that repeat others for one more
machine, fault or form are marked ``thorough``, and run with ``--thorough``.
"""

import gc
import os
import signal
from collections.abc import Iterator
from itertools import compress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from accel.base.result_cache import OFF, VARIABLE
from accel.hw.engines.open_engine import OPTIMIZE
from tests import tools
from tests.thorough import also

_FIRST = (
    "lockstep/test_random.py",
    "lockstep/",
    "hw/formal/",
    "cocotb/",
    "hw/engines/",
    "test_documents.py",
    "sweeps/",
)
"""Long tests come first, so that no process is left with one in the end. test_random builds each machine
once."""
_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_PHASES = [Phase.explicit, Phase.generate, Phase.shrink]

settings.register_profile(
    "whole",
    max_examples=100,
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    phases=_PHASES,
    suppress_health_check=_QUIET,
)
settings.register_profile("ci", settings.get_profile("whole"), max_examples=10)
settings.register_profile("fuzz", settings.get_profile("whole"), derandomize=False, max_examples=5000)
settings.load_profile("ci")


_LEFT_OUT = "accel_left_out"
"""Attribute of the configuration, and key of a worker's output: number of thorough tests that do not run."""


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to require a tool that no test asks for; programs that tests start hear Ctrl-C."""
    config.addinivalue_line(
        "markers", "by_default(*patterns): of given vectors or networks, those that run without --thorough"
    )
    tools.required()
    os.environ.setdefault(OPTIMIZE, "0")  # compiling a model takes longer than the short programs here run
    os.environ[VARIABLE] = OFF  # tests compile themselves
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # half of the time that a command takes
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order long tests first, or leave them out."""
    if not config.getoption("--thorough"):
        marked = [item.get_closest_marker("thorough") is not None for item in items]
        config.hook.pytest_deselected(items=list(compress(items, marked)))
        left_out = config.workeroutput if hasattr(config, "workeroutput") else vars(config)
        left_out[_LEFT_OUT] = sum(marked)
        items[:] = [item for item, left in zip(items, marked, strict=True) if not left]
    folder = Path(__file__).parent.as_posix()

    def place(item: pytest.Item) -> int:
        name = item.path.as_posix().removeprefix(f"{folder}/")
        return next((n for n, first in enumerate(_FIRST) if name.startswith(first)), len(_FIRST))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and never look for it among what the tests themselves are: with ten thousand of
    them around, it took half of the time in which hardware is elaborated."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With groups, all tests of a file without one are a group, too: one process makes what they share. Long
    tests are not; they are handed out one by one, and in their order."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling  # not everybody has it

    class LoadFilesAndGroups(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            found = super()._split_scope(nodeid)
            file = nodeid.partition("::")[0]
            is_long = file.removeprefix("tests/").startswith(_FIRST)
            return found if found != nodeid or is_long else file

    config.option.loadscopereorder = False
    return LoadFilesAndGroups(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep the number that a process of pytest-xdist reports."""
    vars(node.config)[_LEFT_OUT] = getattr(node, "workeroutput", {}).get(_LEFT_OUT, 0)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last lines say what was left out: tests for ``make thorough``, and tools that are not installed.

    Pytest then collects garbage five times, of which each takes half a second for all that tests have cached.
    """
    gc.collect()
    gc.freeze()
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    if left_out := vars(config).get(_LEFT_OUT):
        reporter.write_line(
            f"{left_out} tests were left out: more machines, faults and simulators; `make thorough` runs them"
        )
    reasons = {str(report.longrepr[2]) for report in reporter.stats.get("skipped", [])}
    missed = sorted(r.partition(tools.MISSING)[2] for r in reasons if tools.MISSING in r)
    if missed:
        reporter.write_line(f"Tests were skipped for want of {', '.join(missed)}.", yellow=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="also what shows the same once more")
    parser.addoption(
        "--vectors",
        metavar="DIR",
        default=os.environ.get("ACCEL_VECTORS"),
        help="folder of conformance vectors, one program in each folder below it ($ACCEL_VECTORS)",
    )
    parser.addoption(
        "--models",
        metavar="DIR",
        default=os.environ.get("ACCEL_MODELS"),
        help="folder of networks, one in each folder below it ($ACCEL_MODELS)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each vector and each model; without a folder a single one, skipped."""
    for fixture, what, file in (
        ("vector", "conformance vectors", "insn.bin"),
        ("model", "networks", "model.onnx"),
    ):
        if fixture in metafunc.fixturenames:
            _parametrize(metafunc, fixture, what, file)


def _parametrize(metafunc: pytest.Metafunc, fixture: str, what: str, file: str) -> None:
    option = f"--{fixture}s"
    folder = metafunc.config.getoption(option)
    if folder is None:
        reason = f"no {what}: give their folder by {option}=DIR or ACCEL_{fixture.upper()}S"
        metafunc.parametrize(fixture, [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="none")])
        return
    root = Path(folder)
    found = sorted(path.parent for path in root.glob(f"**/{file}"))
    if not found:
        raise pytest.UsageError(f"{option} is {folder!r}; no folder below it holds {file}")
    marker = metafunc.definition.get_closest_marker("by_default")
    patterns = marker.args if marker else ()
    first = {path for path in found if any(path.match(pattern) for pattern in patterns)} or {*found}
    values = [path if path in first else also(path) for path in found]
    metafunc.parametrize(fixture, values, ids=[str(path.relative_to(root)) for path in found])


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium."""
    tools.needs("chromium")
    from playwright.sync_api import sync_playwright  # not everybody has it

    with sync_playwright() as run:
        browser = run.chromium.launch(
            executable_path=tools.chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()
