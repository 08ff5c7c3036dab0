"""Transfers of a tensor whose elements lie elsewhere, and the settings between the layers of a chain."""

import numpy as np
import pytest

from accel.core.config import NAMED
from accel.core.isa import Finish, Instruction, Set, SetOut, SetSum, StoreAdd, StoreMul, StoreReq, encode
from accel.image.image import Image
from accel.network.chain_builder import _resets
from accel.network.relocated_transfers import relocate_transfer

CONFIG = NAMED["tiny-int8"].override({"res_mul": 1})
TWO_ROWS = {"y_size": 2, "x_size": 3, "x_stride": 3, "sram_base": 4}


def image(*body: Instruction) -> Image:
    return Image(config=CONFIG, code=encode([*body, Finish()], CONFIG), code_offset=0)


def test_a_store_of_several_residuals_is_divided() -> None:
    positions = np.array([0, 1, 2, 10, 11, 12])
    apart = relocate_transfer(StoreAdd(**TWO_ROWS), 0, positions)
    assert apart == [StoreAdd(**(TWO_ROWS | {"x_stride": 10}))]
    pieces = relocate_transfer(StoreAdd(**TWO_ROWS), 0, np.array([0, 1, 5, 10, 11, 15]))
    assert pieces is not None
    assert [(one.sram_base, one.dram_base, one.x_size) for one in pieces] == [
        (4, 0, 2),
        (6, 5, 1),
        (7, 10, 2),
        (9, 15, 1),
    ]


@pytest.mark.parametrize("positions", [[0, 1, 5, 10, 11, 15], [9, 10, 11, 0, 1, 2]])
def test_a_store_that_holds_a_residual_stays_whole(positions: list[int]) -> None:
    """Each piece would take a residual of its own."""
    store = StoreMul(**TWO_ROWS, hold=True)
    assert relocate_transfer(store, 0, np.array(positions)) is None
    moved = relocate_transfer(store, 0, np.array([0, 1, 2, 10, 11, 12]))
    assert moved == [StoreMul(**(TWO_ROWS | {"x_stride": 10}), hold=True)]


@pytest.mark.parametrize(
    ("store", "kinds"), [(StoreReq, [SetOut]), (StoreAdd, [SetOut, SetSum]), (StoreMul, [SetOut, SetSum])]
)
def test_a_layer_starts_with_the_settings_that_its_stores_read(
    store: type[StoreReq], kinds: list[type[Set]]
) -> None:
    """The layer before has changed them, and this layer relies on their initial values."""
    layer = [store(y_size=1, x_size=1)]
    assert [type(one) for one in _resets(layer, {SetOut, SetSum})] == kinds
    assert _resets(layer, set()) == []
