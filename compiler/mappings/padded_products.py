"""Products whose operands both have zero points, with padding along their sums.

The machine sums whole blocks. Zeros in the last one stand for the number zero only in an operand without a
zero point. Otherwise the host pads both operands with their zero points.
"""

from accel.compiler.mappings.mapping import OperatorMapping
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload, gemm, has_two_zeros
from accel.core.config import Config
from accel.image.tensor_view import View

PADDED = "padded"


def needs_padding(workload: Workload, config: Config) -> bool:
    """Whether only padded operands work, as for a sum over 50 values with two zero points in blocks of 16."""
    return has_two_zeros(workload) and workload.parameters["K"] % config.block_in != 0


def padded_product(workload: Workload, config: Config) -> OperatorMapping:
    """Return the mapping that pads a ``gemm``'s operands to whole blocks."""
    sizes, quantized = workload.parameters, workload.epilogue
    assert isinstance(quantized, Quantized)
    K = sizes["K"]
    padded = -(-K // config.block_in) * config.block_in
    transposes = {name: sizes[name] for name in ("transpose_a", "transpose_b")}
    inner = gemm(
        sizes["M"],
        sizes["N"],
        padded,
        batch=sizes.get("batch"),
        **transposes,
        bias=sizes["bias"],
        quantized=quantized,
    )
    several = () if "batch" not in sizes else (sizes["batch"],)
    rows, columns = (sizes["M"], K), (K, sizes["N"])
    a = (*several, *(rows[::-1] if transposes["transpose_a"] else rows))
    b = (*several, *(columns[::-1] if transposes["transpose_b"] else columns))
    views = {
        "A": _padded(a, len(a) - (2 if transposes["transpose_a"] else 1), padded, quantized.input_zero),
        "B": _padded(b, len(b) - (1 if transposes["transpose_b"] else 2), padded, quantized.weight_zero),
    }
    return OperatorMapping(name=PADDED, source=workload, workload=inner, views=views)


def _padded(shape: tuple[int, ...], axis: int, size: int, fill: int) -> View:
    rank = len(shape)
    return View(
        shape=shape,
        before=(0,) * rank,
        sizes=(*shape[:axis], size, *shape[axis + 1 :]),
        coefficients=tuple(tuple(int(column == row) for column in range(rank)) for row in range(rank)),
        fill=fill,
    )
