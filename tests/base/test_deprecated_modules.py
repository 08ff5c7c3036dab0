"""Documented modules that moved: found under their old names, with a warning, the very same modules."""

import importlib
import subprocess
import sys

import pytest

from accel.base.deprecated_modules import MOVED

_SCRIPT = """
import importlib, sys, warnings
import accel

old, new = sys.argv[1:3]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = importlib.import_module(old)
target = importlib.import_module(new)
assert found is target, (found, target)
assert target.__spec__.name == target.__name__ == new, target.__spec__
assert sys.modules[old] is target
assert any(f"{old} is now {new}" in str(one.message) for one in caught), [str(c.message) for c in caught]
assert {one.category for one in caught} == {DeprecationWarning}
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a new interpreter, since imported modules stay imported."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], check=False, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("old", "new"), [("accel.config", MOVED["accel.config"]), ("accel.isa.codec", "accel.core.isa.codec")]
)
def test_an_old_name_gives_the_module_of_the_new_one(old: str, new: str) -> None:
    done = run(_SCRIPT, old, new)
    assert done.returncode == 0, done.stderr


def test_every_old_name_is_found() -> None:
    names = [*MOVED, "accel.isa.fields"]
    done = run(f"import importlib\nfor name in {names}: importlib.import_module(name)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("folder", "name", "module"),
    [
        ("accel.image", "Image", "accel.image.image"),
        ("accel.image", "free_address", "accel.image.address_allocation"),
        ("accel.image", "array_bytes", "accel.image.image_tensor"),
        ("accel.compiler.expr", "Const", "accel.compiler.expr.scalar_expressions"),
        ("accel.compiler.schedule", "create_schedule", "accel.compiler.schedule.schedule"),
        ("accel.compiler.schedule", "thread_axis", "accel.compiler.schedule.stage_splits"),
    ],
)
def test_a_folder_holds_what_the_module_of_its_name_held(folder: str, name: str, module: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{folder}.{name} is now {module}.{name}") as caught:
        exec(f"from {folder} import {name}")
    assert caught[0].filename == "<string>"
    done = run(f"from {folder} import nothing_of_that_name")
    assert "ImportError: cannot import name 'nothing_of_that_name'" in done.stderr


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("accel.run.critical_path", "cut", "split_path"),
        ("accel.run.critical_path", "waits_of", "wait_graph_of"),
        ("accel.run.machine_advice", "Advised", "AdviceReport"),
    ],
)
def test_a_renamed_function_or_class_is_found(module: str, old: str, new: str) -> None:
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{module}.{old} is now {module}.{new}"):
        assert getattr(found, old) is getattr(found, new)
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        _ = found.nothing


def test_the_warning_is_about_the_line_that_imports() -> None:
    done = run("import accel\nimport accel.config")
    assert "<string>:2: DeprecationWarning: accel.config is now accel.core.config" in done.stderr
