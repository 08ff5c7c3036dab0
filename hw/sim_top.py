"""The machine as simulations see it."""

from accel.core.config import Config
from accel.hw.core import Core


class SimTop(Core):
    def __init__(self, config: Config, *, named: bool = False) -> None:
        super().__init__(config, observed=True, named=named)
