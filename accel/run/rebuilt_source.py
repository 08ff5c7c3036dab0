"""A program's source, rebuilt from its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_array, check_mapping
from accel.base.errors import ProgramError, ShapeError, nearest
from accel.compiler.expr.compulsory_cost import Compulsory, compulsory
from accel.compiler.expr.expression_data import expression_from_data
from accel.compiler.expr.numpy_reference import evaluate
from accel.compiler.expr.random_inputs import random_inputs
from accel.compiler.expr.tensor_expressions import Placeholder, Tensor, producers
from accel.image.image import Image
from accel.run.run_options import check_seed

if TYPE_CHECKING:
    from accel.compiler.schedule.schedule import Schedule

_WITHOUT_SOURCE = "it can be run, checked, disassembled, and shown at the stages streams and asm"


@dataclass(frozen=True, kw_only=True, repr=False)
class Compiled(Image):
    """An image with its source, as far as known."""

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs of the tensor expression.

        Raises:
            ProgramError: there is none, or it is damaged.
        """
        if self.source is None or self.source.expression is None:
            raise ProgramError(f"the program holds no tensor expression; {_WITHOUT_SOURCE}")
        outputs = expression_from_data(self.source.expression)
        self._check_expression(outputs)
        return outputs

    @cached_property
    def computed(self) -> tuple[Tensor, ...]:
        """Outputs of the compiled expression: :attr:`outputs`, unless a mapping replaced it."""
        if self.source is None or self.source.mapped is None:
            return self.outputs
        computed = expression_from_data(self.source.mapped.expression)
        self._check_expression(computed, inner=True)
        return computed

    @property
    def has_expression(self) -> bool:
        return self.source is not None and self.source.expression is not None

    def schedule(self) -> "Schedule":
        """Rebuild the schedule.

        Raises:
            ProgramError: the program has none.
            ScheduleError: it uses other intrinsics than the machine's.
        """
        from accel.compiler.schedule.schedule import create_schedule
        from accel.compiler.schedule.schedule_steps import apply_steps  # slow to import, seldom needed
        from accel.compiler.target.machine import Machine

        schedule = create_schedule(self.computed)
        if self.source is None or self.source.schedule is None:
            raise ProgramError(f"the program holds no schedule; {_WITHOUT_SOURCE}")
        target = Machine(self.config)
        apply_steps(schedule, self.source.schedule, target.intrinsic, target.scope)
        return schedule

    @property
    def vthreads(self) -> int:
        """Virtual threads, or 1 if unknown."""
        steps = (self.source.schedule if self.source is not None else None) or []
        bound = {(step["stage"], step["axis"]) for step in steps if step["op"] == "bind"}
        made = [
            int(step["factor"])
            for step in steps
            if step["op"] == "split" and (step["stage"], (step["names"] or ("", ""))[1]) in bound
        ]
        return max(made, default=1)

    @property
    def folded(self) -> bool:
        """Whether reset and bias may fold into one pass."""
        options = None if self.source is None else self.source.options
        return options is None or options.fold is not False

    @cached_property
    def compulsory(self) -> Compulsory | None:
        """The least work of :attr:`outputs`, if known."""
        return compulsory(self.outputs) if self.has_expression else None

    @cached_property
    def carried(self) -> Compulsory | None:
        """The least work of :attr:`computed`: above :attr:`compulsory` if the host packs values
        repeatedly."""
        if self.source is None or self.source.mapped is None:
            return self.compulsory
        return compulsory(self.computed)

    def _check_expression(self, outputs: tuple[Tensor, ...], *, inner: bool = False) -> None:
        written = {t.name: (t.shape, t.dtype) for t in outputs}
        read = {t.name: (t.shape, t.dtype) for t in producers(outputs) if isinstance(t.op, Placeholder)}
        for tensor in self.tensors:
            known = written if tensor.role == "output" else read
            shape = tensor.inner_shape if inner else tensor.shape
            if known.get(tensor.name) != (shape, tensor.dtype):
                raise ProgramError(
                    f"the tensor expression is damaged: it has no {tensor.role} {tensor.name} of "
                    f"{tensor.dtype}{list(shape)}, as the program has"
                )

    @property
    def inputs(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and dtype of every input, by name."""
        return {t.name: (t.shape, t.dtype) for t in self.tensors if t.role == "input"}

    def named_inputs(self, given: object) -> dict[str, Any]:
        """Return the given inputs by name, or raise a ShapeError."""
        known = self.inputs
        named = check_mapping("the inputs", given)
        for name in named:
            if name not in known:
                raise ShapeError(f"{name!r} is not an input of the program; {nearest(name, known)}")
        return named

    def checked_inputs(self, given: object) -> dict[str, npt.NDArray[Any]]:
        """Return the inputs as plain arrays.

        Raises:
            ShapeError: as :meth:`named_inputs`, or another shape or dtype, or a masked array.
        """
        known = self.inputs
        return {
            name: check_array(name, value, *known[name]) for name, value in self.named_inputs(given).items()
        }

    def random_inputs(self, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Return random inputs. If the expression is known, results seldom saturate.

        Raises:
            AccelError: the seed is negative.
        """
        seed = check_seed(seed)
        if not self.has_expression:
            rng = np.random.default_rng(seed)
            bounds = {dtype: np.iinfo(dtype) for dtype in ("int8", "uint8", "int32")}
            return {
                name: rng.integers(bounds[dtype].min, bounds[dtype].max, shape, dtype, endpoint=True)
                for name, (shape, dtype) in self.inputs.items()
            }
        constants = {t.name for t in self.tensors if t.role == "constant"}
        drawn = random_inputs(self.outputs, seed)
        return {name: value for name, value in drawn.items() if name not in constants}

    def reference(self, inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Compute the outputs with numpy.

        Raises:
            ProgramError: the program has no tensor expression.
            ShapeError: an input is missing, or has another shape or dtype.
        """
        known = self.inputs
        given = {
            name: check_array(name, value, *known[name]) if name in known else value
            for name, value in check_mapping("the inputs", inputs).items()
        }
        return evaluate(self.outputs, {**given, **self._constants()})

    def _constants(self) -> dict[str, npt.NDArray[Any]]:
        segments = dict(self.segments)
        found = {}
        for tensor in self.tensors:
            if tensor.role == "constant":
                found[tensor.name] = tensor.unpack(np.frombuffer(segments[tensor.offset], dtype=np.uint8))
        return found
