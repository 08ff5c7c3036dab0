"""What compiling needs to know of a machine; the public one is :class:`accel.machines.Machine`."""

from typing import Protocol

from accel.compiler.intrin import Intrinsic
from accel.compiler.scope import Scope
from accel.core.config import Config


class MachineLike(Protocol):
    """Its configuration, memory scopes and intrinsics."""

    @property
    def config(self) -> Config: ...

    @property
    def inp_buffer(self) -> Scope: ...

    @property
    def wgt_buffer(self) -> Scope: ...

    @property
    def acc_buffer(self) -> Scope: ...

    @property
    def gemm(self) -> Intrinsic: ...

    @property
    def alu(self) -> Intrinsic: ...
