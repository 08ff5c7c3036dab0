"""Matrix products and fully connected layers, and what follows the sums of any layer."""

from accel.compiler.operators.operator import Operator
from accel.compiler.operators.parameter import Kind, Parameter
from accel.compiler.ops.quantized import Quantized
from accel.compiler.ops.workload import dense, gemm
from accel.compiler.plans.gemm_default import GEMM_PLANNER

BATCH = Parameter(name="N", also=("batch",), otherwise=1, text="Inputs in a batch.")


def epilogue(length: str) -> tuple[Parameter, ...]:
    """What follows the sums; ``length`` is the bias's."""
    return (
        Parameter(name="bias", kind=Kind.FLAG, text=f"Add an int32 bias of shape ({length},)."),
        Parameter(
            name="residual",
            kind=Kind.FLAG,
            text="After the shift, add an int8 tensor of the result's shape.",
        ),
        Parameter(name="relu", kind=Kind.FLAG, text="Negative values become zero."),
        Parameter(name="shift", text="Shift sums right by 0..31 bits, then saturate to int8."),
        Parameter(name="clip", kind=Kind.BOUNDS, form="LOW,HIGH", text="Saturate to these bounds."),
        quantized(shared=("clip",)),
    )


def quantized(*, shared: tuple[str, ...] = ()) -> Parameter:
    """Scales and zero points; ``shared`` are parameters that the operator has without them, too."""
    fields = (
        Parameter(
            name="scale",
            kind=Kind.SCALES,
            form="X | FILE.npy",
            text="Multiply sums by this float32, or one for each channel; for machines with post=1.",
        ),
        Parameter(name="input_zero", text="Zero point of the input.", default="0"),
        Parameter(name="input_dtype", kind=Kind.TYPE, text="Type of the input.", default="int8"),
        Parameter(name="output_zero", text="Zero point of the result.", default="0"),
        Parameter(name="output_dtype", kind=Kind.TYPE, text="Type of the result.", default="int8"),
        Parameter(name="clip", kind=Kind.BOUNDS, form="LOW,HIGH", text="Saturate to these bounds."),
        Parameter(name="result_scale", kind=Kind.NUMBER, text="The result's scale, to add a residual."),
        Parameter(name="residual_scale", kind=Kind.NUMBER, text="Add a residual with this scale."),
        Parameter(name="residual_zero", text="Its zero point.", default="0"),
        Parameter(name="residual_dtype", kind=Kind.TYPE, text="Its type.", default="int8"),
        Parameter(
            name="residual_order",
            kind=Kind.ORDER,
            text="In float32, the result's multiply-add is the last (left), the residual's (right), or both "
            "are numbers that are added (apart).",
            default="left",
        ),
        Parameter(name="sum_scale", kind=Kind.NUMBER, text="Scale of the sum with the residual."),
        Parameter(name="sum_zero", text="Its zero point.", default="0"),
        Parameter(name="sum_dtype", kind=Kind.TYPE, text="Its type.", default="int8"),
        Parameter(name="sum_clip", kind=Kind.BOUNDS, form="LOW,HIGH", text="Saturate it to these bounds."),
        Parameter(name="approximate", kind=Kind.FLAG, text="Sums may differ from float32 by 1."),
    )
    return Parameter(
        name="quantized",
        kind=Kind.RECORD,
        text="Scales and zero points.",
        fields=tuple(one for one in fields if one.name not in shared),
        shared=shared,
        make=Quantized.from_dict,
    )


AFTER = (
    "Without --shift, --residual, --relu and --clip, {result} holds the low 8 bits of the sums. With any: "
    "plus bias, shift right, plus residual, ReLU, saturation, in this order. With --scale, on machines with "
    "post=1, instead: plus bias, times the scale in float32, rounded half to even, plus the zero point, "
    "saturation; then perhaps plus a residual, as ONNX's quantized operators have it."
)
"""What the command line says of the epilogue."""

GEMM = Operator(
    name="gemm",
    make=gemm,
    parameters=(
        Parameter(name="M", text="Rows of A and C."),
        Parameter(name="N", text="Columns of B and C."),
        Parameter(name="K", text="Columns of A, rows of B."),
        Parameter(name="transpose_a", kind=Kind.FLAG, text="A is stored as (K, M)."),
        Parameter(name="transpose_b", kind=Kind.FLAG, text="B is stored as (N, K)."),
        *epilogue("N"),
    ),
    planner=GEMM_PLANNER,
    machine="gemm8x8",
    summary="C = A @ B on int8 operands, with int32 sums and an int8 result.",
    text=f"A is (M, K), B is (K, N). {AFTER.format(result='C')}",
    examples=(
        "gemm -m 100 -n 300 -k 77 --bias --relu --shift 8 --config vta -o gemm.accel",
        "gemm -m 512 -n 512 -k 512 --explain --save-schedule mine.toml",
        "gemm -m 512 -n 512 -k 512 --schedule mine.toml --vthreads 4 -o gemm.accel",
        "gemm -m 512 -n 512 -k 512 --tile m=64,n=128 -o gemm.accel",
    ),
)

DENSE = Operator(
    name="dense",
    make=dense,
    parameters=(
        BATCH,
        Parameter(name="IC", text="Inputs of the layer."),
        Parameter(name="OC", text="Outputs of the layer."),
        *epilogue("OC"),
    ),
    planner=GEMM_PLANNER,
    summary="A fully connected layer: out = data @ weight.T on int8 operands, with an int8 result.",
    text=f"data is (N, IC), weight is (OC, IC), out is (N, OC). {AFTER.format(result='out')}",
    examples=("dense --ic 512 --oc 1000 --bias --shift 8 -o dense.accel",),
)
