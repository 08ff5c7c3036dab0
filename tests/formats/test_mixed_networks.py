"""Random networks of quantized layers, float operators, and operators that only ONNX Runtime has."""

import pytest

from tests.formats.mixed_networks import check
from tests.thorough import also


@pytest.mark.parametrize("seed", [*range(12), *map(also, range(12, 24))])
def test_they_equal_onnx_runtime(seed: int) -> None:
    assert check(seed, ("vta-int8", "tiny-int8", "gemm8x8-int8")[seed % 3])
