"""A run and its result: execute, compare with numpy, say what it took; the one way on which programs run."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from accel.base.errors import MachineError
from accel.compiler.expr.metrics import Compulsory
from accel.image.dram import Dram
from accel.image.image import Image
from accel.run.backends.backend import Backend, Execution
from accel.run.options import RunOptions
from accel.run.result import Result, TimedResult
from accel.sim.functional.scratchpads import Scratchpads

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A run that is over.

    Attributes:
        image: what ran, with the timing of the run.
        backend: its name.
        execution: how the run ended.
        seconds: from a loaded program with its inputs in memory to outputs and cycles in memory.
    """

    image: Image
    backend: str
    execution: Execution
    seconds: float

    @property
    def error(self) -> MachineError | None:
        """What ended the run early, or None."""
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
        """What the run gave; the error that ended it early knows it, too.

        Args:
            outputs: arrays by name, of a run that ended well.
            reference: computes what they must be; they are not compared if it is not given.
            compulsory: what the computation takes at least.
            carried: the same of the operator that the program carries out.
            pack_seconds: that the host took to pack inputs and to unpack outputs.
        """
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
    """Run a program on memories that are ready.

    Args:
        program: with the timing of this run.
        dram: with instructions and inputs in it; it is changed.
        pads: the scratchpads, which are changed; first they get what the program presets.
        backend: what runs it, new or reset.
        options: of the run.

    Raises:
        HardwareError: the hardware breaks a rule.
    """
    start = time.perf_counter()
    execution = backend.execute(program, dram, pads, options)
    return Launch(
        image=program, backend=backend.name, execution=execution, seconds=time.perf_counter() - start
    )
