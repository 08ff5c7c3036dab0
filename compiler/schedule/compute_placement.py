"""Where a stage is computed, and how long its data stay in a scratchpad."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from accel.base.errors import ScheduleError
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.schedule.stage_splits import Loops
from accel.compiler.target.memory_scope import Scope


class PlacedLoops(Loops):
    """Loops with operators that place them. ``Stage`` describes the attributes."""

    scope: Scope | None
    attach: tuple[Self, IterVar] | None
    is_root: bool
    resident_at: tuple[Self, IterVar] | None
    is_resident: bool
    prefetches: bool
    starts_after: Self | None

    @property
    @abstractmethod
    def is_copy(self) -> bool: ...

    @abstractmethod
    def _stage_of(self, tensor: Self | Tensor) -> Self: ...

    @abstractmethod
    def _check_reader(self, stage: Self) -> None:
        """Refuse a stage that does not need this one, or any if this one is an output."""

    def compute_at(self, consumer: Self | Tensor, axis: IterVar | str) -> None:
        """Compute, inside a loop of ``consumer``, only the part that the loop's body reads.

            for y in range(64):         for yo in range(8):
                B[y] = A[y]                 for y in range(8):
            for yo in range(8):                 B[y] = A[yo*8+y]
                for yi in range(8):         for yi in range(8):
                    C[yo*8+yi] = B[yo*8+yi]     C[yo*8+yi] = B[yi]

        Raises:
            ScheduleError: the axis is not a loop of the consumer, the consumer does not need this stage, or
                this stage is an output.
        """
        stage = self._stage_of(consumer)
        self._check_reader(stage)
        loop = stage._find_loop(axis)
        self.attach, self.is_root = (stage, loop), False
        self._record_step("compute_at", consumer=stage.name, axis=loop.name)

    def compute_root(self) -> None:
        """Compute the whole tensor before the loops that read it. This undoes :meth:`compute_at`."""
        self.attach, self.is_root = None, True
        self._record_step("compute_root")

    def keep_at(self, consumer: Self | Tensor, axis: IterVar | str, *, ahead: bool = False) -> None:
        """Keep copied data resident in a scratchpad during a loop of ``consumer`` around the loop of
        :meth:`compute_at`.

            for y in range(64):         for y in range(64):
                for k in range(4):          for k in range(4):
                    B[j] = A[k*8+j]             B[k][j] = A[k*8+j]      only for y = 0
                    C[y] += B[j]                C[y] += B[k][j]

        The buffer holds the data of all inner iterations. Virtual threads that need the same data share them.

        Args:
            ahead: whether a second buffer set receives the next iteration's data during this one, also across
                the outer loops.

        Raises:
            ScheduleError: the stage is not a copy into a scratchpad, or the axis is not a loop of the
                consumer.
        """
        stage = self._stage_of(consumer)
        self._check_resident_copy()
        loop = stage._find_loop(axis)
        self.resident_at, self.is_resident, self.prefetches = (stage, loop), True, ahead
        self._record_step(
            "keep_at", consumer=stage.name, axis=loop.name, **({"ahead": True} if ahead else {})
        )

    def keep_root(self) -> None:
        """Keep copied data resident for the whole program.

        Raises:
            ScheduleError: the stage is not a copy into a scratchpad.
        """
        self._check_resident_copy()
        self.resident_at, self.is_resident, self.prefetches = None, True, False
        self._record_step("keep_root")

    def _check_resident_copy(self) -> None:
        if self.scope is None or not self.is_copy:
            raise ScheduleError(f"{self.name} is not a copy into a scratchpad; only copies can stay resident")

    def start_after(self, other: Self | Tensor) -> None:
        """Delay the first copy into inp_buffer or wgt_buffer until the first copy of ``other`` into
        acc_buffer is issued.

        Otherwise DRAM first serves all requests of the load unit, which runs ahead.

        Raises:
            ScheduleError: the stage is not a copy into inp_buffer or wgt_buffer, or ``other`` is not one into
                acc_buffer.
        """
        stage = self._stage_of(other)
        for one, names in ((self, ("inp_buffer", "wgt_buffer")), (stage, ("acc_buffer",))):
            if one.scope is None or one.scope.name not in names or not one.is_copy:
                raise ScheduleError(
                    f"{one.name} is not a copy into {' or '.join(names)}; start_after orders copies of the "
                    f"load unit after those of the compute unit"
                )
        self.starts_after = stage
        self._record_step("start_after", other=stage.name)
