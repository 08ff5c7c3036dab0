"""Documented modules that have moved: their old names still import, with a warning, for one release.

The table is the whole of it; no file stands where a module was. An old name gives the very module that has
the new one, so classes are the same by either.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half of what importing accel would cost
    from importlib.abc import Loader, MetaPathFinder
else:
    Loader = MetaPathFinder = object

MOVED = {
    "accel.config": "accel.core.config",
    "accel.errors": "accel.base.errors",
    "accel.events": "accel.core.events",
    "accel.faults": "accel.core.faults",
    "accel.isa": "accel.core.isa",
    "accel.isa.instructions": "accel.core.isa.instructions",
    "accel.listing": "accel.run.stages",
    "accel.lockstep": "accel.run.lockstep",
    "accel.machines": "accel.compiler.target.machine",
    "accel.micro_ops": "accel.proof.uop_memory",
    "accel.program": "accel.run.program",
    "accel.registers": "accel.core.registers",
    "accel.result": "accel.run.result",
    "accel.schedules": "accel.compiler.schedule.files",
    "accel.session": "accel.run.session",
    "accel.tokens": "accel.proof.check",
    "accel.workloads": "accel.compiler.operators.registry",
    "accel.compiler.conv": "accel.compiler.ops.conv",
    "accel.compiler.emitters": "accel.compiler.target.emitters",
    "accel.compiler.epilogue": "accel.compiler.ops.epilogue",
    "accel.compiler.intrin": "accel.compiler.target.intrin",
    "accel.compiler.metrics": "accel.compiler.expr.metrics",
    "accel.compiler.pool": "accel.compiler.ops.pool",
    "accel.compiler.registry": "accel.compiler.target.registry",
    "accel.compiler.tensor": "accel.compiler.expr.tensor",
    "accel.compiler.workload": "accel.compiler.ops.workload",
    "accel.hw.verilog": "accel.hw.export.verilog",
}
"""Old name to new name. Names that are folders now are served by :func:`reexport`, in the folders."""


class _Alias(Loader):
    """Gives the module of the new name, as it is."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run; the import system has given the module the old name's spec."""
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    """Finds old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        new = MOVED.get(fullname) or (f"{MOVED[parent]}.{name}" if parent in MOVED else None)
        if new is None:
            return None
        _warn(fullname, new)
        return ModuleSpec(fullname, _Alias(new))


def install() -> None:
    """Have old names found; first of all, or a moved folder's modules would be loaded a second time."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def reexport(folder: str, *modules: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a folder named as a documented module was: what that held is still found.

    Args:
        folder: the folder's name.
        modules: the module's new names, inside it.
    """

    def find(name: str) -> object:
        for module in () if name.startswith("_") else modules:
            found: object = getattr(importlib.import_module(module), name, None)
            if found is not None:
                _warn(f"{folder}.{name}", f"{module}.{name}")
                return found
        raise AttributeError(f"module {folder!r} has no attribute {name!r}")

    return find


def _warn(old: str, new: str) -> None:
    """Warn whoever imports: behind this function and its caller, the import system's frames do not count."""
    warnings.warn(
        f"{old} is now {new}; the old name goes with the next release", DeprecationWarning, stacklevel=3
    )
