"""Random networks of quantized layers, float operators, and operators that only ONNX Runtime has."""

import pytest

from tests.formats.mixed_networks import check


@pytest.mark.parametrize("seed", range(24))
def test_they_equal_onnx_runtime(seed: int) -> None:
    assert check(seed, ("vta-int8", "tiny-int8", "gemm8x8-int8")[seed % 3])
