"""One run and its result."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import MachineError
from accel.compiler.expr.compulsory_cost import Compulsory
from accel.image.dram import Dram
from accel.image.image import Image
from accel.run.backends.backend import Backend, Execution
from accel.run.result import Result, TimedResult
from accel.run.run_options import RunOptions
from accel.sim.functional.scratchpads import Scratchpads

Arrays = Mapping[str, npt.NDArray[Any]]


class Launch(Struct, frozen=True, kw_only=True):
    """A run that has ended."""

    image: Image
    backend: str
    execution: Execution
    seconds: float

    @property
    def error(self) -> MachineError | None:
        return self.execution.error

    def result(
        self,
        outputs: Arrays,
        *,
        reference: Callable[[], Arrays] | None = None,
        compulsory: Compulsory | None = None,
        carried: Compulsory | None = None,
        pack_seconds: float,
    ) -> Result:
        """Return the result, and attach it to the error, if any."""
        done = self.execution
        mismatches = None
        if reference is not None and done.error is None:
            expected = reference()
            mismatches = sum(int((outputs[name] != expected[name]).sum()) for name in outputs)
        kind: type[Result] = Result if done.timing is None else TimedResult
        result = kind(
            outputs=dict(outputs),
            mismatches=mismatches,
            backend=self.backend,
            image=self.image,
            uops=done.uops,
            timing=done.timing,
            compulsory=compulsory if done.error is None else None,
            carried=carried if done.error is None else None,
            compile_seconds=self.image.compile_seconds,
            pack_seconds=pack_seconds,
            simulate_seconds=self.seconds,
            error=done.error,
        )
        if done.error is not None:
            done.error.result = result
        return result


def launch(program: Image, dram: Dram, pads: Scratchpads, backend: Backend, options: RunOptions) -> Launch:
    start = time.perf_counter()
    execution = backend.execute(program, dram, pads, options)
    return Launch(
        image=program, backend=backend.name, execution=execution, seconds=time.perf_counter() - start
    )
