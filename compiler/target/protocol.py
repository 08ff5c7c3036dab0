"""What compiling needs of a machine; the public one is :class:`accel.compiler.target.machine.Machine`."""

from typing import Protocol

from accel.compiler.target.intrin import Intrinsic
from accel.compiler.target.scope import Scope
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
