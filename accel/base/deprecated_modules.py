"""Documented modules that have moved. Old names import the same module, with a warning, for one release."""

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing them doubles the time
    from importlib.abc import Loader, MetaPathFinder
else:
    Loader = MetaPathFinder = object

MOVED = {
    "accel.config": "accel.core.config",
    "accel.errors": "accel.base.errors",
    "accel.events": "accel.core.events",
    "accel.faults": "accel.core.fault_causes",
    "accel.isa": "accel.core.isa",
    "accel.isa.instructions": "accel.core.isa",
    "accel.listing": "accel.run.stage_listing",
    "accel.lockstep": "accel.run.lockstep",
    "accel.machines": "accel.compiler.target.machine",
    "accel.micro_ops": "accel.proof.uop_memory",
    "accel.program": "accel.run.program",
    "accel.registers": "accel.core.registers",
    "accel.result": "accel.run.result",
    "accel.schedules": "accel.compiler.schedule.schedule_files",
    "accel.session": "accel.run.session",
    "accel.tokens": "accel.proof.token_check",
    "accel.workloads": "accel.compiler.operators.operator_registry",
    "accel.compiler.conv": "accel.compiler.ops.conv2d",
    "accel.compiler.emitters": "accel.compiler.target.builtin_emitters",
    "accel.compiler.epilogue": "accel.compiler.ops.epilogue",
    "accel.compiler.intrin": "accel.compiler.target.intrinsic_declaration",
    "accel.compiler.metrics": "accel.compiler.expr.compulsory_cost",
    "accel.compiler.pool": "accel.compiler.ops.pool2d",
    "accel.compiler.registry": "accel.compiler.target.emitter_registry",
    "accel.compiler.tensor": "accel.compiler.expr.tensor_expressions",
    "accel.compiler.workload": "accel.compiler.ops.workload",
    "accel.hw.verilog": "accel.hw.export.verilog",
    "accel.benchmarks.networks": "accel.benchmarks.benchmark_networks",
    "accel.compiler.expr.metrics": "accel.compiler.expr.compulsory_cost",
    "accel.compiler.expr.post": "accel.compiler.expr.epilogue_operators",
    "accel.compiler.expr.quantized": "accel.compiler.expr.quantized_expressions",
    "accel.compiler.expr.scalar": "accel.compiler.expr.scalar_expressions",
    "accel.compiler.expr.tensor": "accel.compiler.expr.tensor_expressions",
    "accel.compiler.operators.registry": "accel.compiler.operators.operator_registry",
    "accel.compiler.ops.conv": "accel.compiler.ops.conv2d",
    "accel.compiler.ops.pool": "accel.compiler.ops.pool2d",
    "accel.compiler.ops.quantized": "accel.compiler.ops.quantized_layers",
    "accel.compiler.schedule.files": "accel.compiler.schedule.schedule_files",
    "accel.compiler.target.emitters": "accel.compiler.target.builtin_emitters",
    "accel.compiler.target.intrin": "accel.compiler.target.intrinsic_declaration",
    "accel.compiler.target.registry": "accel.compiler.target.emitter_registry",
    "accel.core.access": "accel.core.instruction_access",
    "accel.core.faults": "accel.core.fault_causes",
    "accel.core.isa.instructions": "accel.core.isa",
    "accel.core.isa.fields": "accel.core.isa.instruction_fields",
    "accel.core.isa.text": "accel.core.isa.instruction_text",
    "accel.core.memories": "accel.core.scratchpad_specs",
    "accel.formats.quantization": "accel.formats.quantize_onnx",
    "accel.hw.engines.choose": "accel.hw.engines.open_engine",
    "accel.hw.engines.driver": "accel.hw.engines.engine_driver",
    "accel.image.layout": "accel.image.packed_layout",
    "accel.image.link": "accel.image.linker",
    "accel.image.references": "accel.image.dram_references",
    "accel.image.tensor": "accel.image.image_tensor",
    "accel.network.advice": "accel.network.network_advice",
    "accel.network.file": "accel.network.network_file",
    "accel.network.program": "accel.network.network_program",
    "accel.network.result": "accel.network.network_result",
    "accel.proof.check": "accel.proof.token_check",
    "accel.run.advice": "accel.run.machine_advice",
    "accel.run.backends.choose": "accel.run.backends.open_backend",
    "accel.run.build": "accel.run.build_program",
    "accel.run.compiled": "accel.run.rebuilt_source",
    "accel.run.critical": "accel.run.critical_path",
    "accel.run.options": "accel.run.run_options",
    "accel.run.stages": "accel.run.stage_listing",
    "accel.run.tables": "accel.run.event_tables",
    "accel.run.waits": "accel.run.wait_causes",
    "accel.sweeps.spec": "accel.sweeps.sweep_spec",
    "accel.views.comparison": "accel.views.run_comparison",
    "accel.views.widget": "accel.views.notebook_widget",
}
"""Old name to new name. Folders serve former modules of their name by :func:`reexport`."""


class _Alias(Loader):
    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
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
    """Find old names before the import system, which would load modules again."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def reexport(folder: str, *modules: str) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a folder named like a former module."""

    def find(name: str) -> object:
        for module in () if name.startswith("_") else modules:
            found: object = getattr(importlib.import_module(module), name, None)
            if found is not None:
                _warn(f"{folder}.{name}", f"{module}.{name}")
                return found
        raise AttributeError(f"module {folder!r} has no attribute {name!r}")

    return find


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a module for its old names."""

    def find(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", f"{module}.{names[name]}")
        found: object = getattr(importlib.import_module(module), names[name])
        return found

    return find


def renamed_attributes(names: Mapping[str, str]) -> Callable[[Any, str], object]:
    """Return the ``__getattr__`` of a class for its old attributes."""

    def find(self: Any, name: str) -> object:
        cls = type(self).__name__
        if name not in names:
            raise AttributeError(f"{cls!r} object has no attribute {name!r}")
        _warn(f"{cls}.{name}", f"{cls}.{names[name]}")
        found: object = getattr(self, names[name])
        return found

    return find


def _warn(old: str, new: str) -> None:
    """Warn the importing code, skipping frames of the import system."""
    warnings.warn(
        f"{old} is now {new}; the old name goes with the next release", DeprecationWarning, stacklevel=3
    )
