"""The operators gemm and dense, and the epilogue parameters of all sums of products."""

from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.operator_parameters import Parameter, ParameterKind
from accel.compiler.ops.epilogue_operations import OPERATION_FORM
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import dense, gemm
from accel.compiler.plans.gemm_planner import GEMM_PLANNER

BATCH = Parameter(name="N", aliases=("batch",), omitted_value=1, text="Inputs in a batch.")


def epilogue(length: str, *, weights: bool = False) -> tuple[Parameter, ...]:
    """Return an epilogue's parameters. ``length`` names the bias's length.

    ``weights`` says whether the second operand may have a type and a zero point.
    """
    return (
        Parameter(name="bias", kind=ParameterKind.FLAG, text=f"Add an int32 bias of shape ({length},)."),
        Parameter(
            name="residual",
            kind=ParameterKind.FLAG,
            text="After the shift, add an int8 tensor of the result's shape.",
        ),
        Parameter(name="relu", kind=ParameterKind.FLAG, text="Negative values become zero."),
        Parameter(name="shift", text="Shift sums right by 0..31 bits, then saturate to int8."),
        Parameter(
            name="clip", kind=ParameterKind.BOUNDS, metavar="LOW,HIGH", text="Saturate to these bounds."
        ),
        Parameter(
            name="operations",
            kind=ParameterKind.OPERATIONS,
            aliases=("operation",),
            metavar=OPERATION_FORM,
            text="After the bias and before the shift, apply a declared operation of the ALU to the sums, "
            f"with this number or with an int32 operand of shape ({length},) (repeatable).",
        ),
        quantized(shared=("clip",), weights=weights),
    )


_WEIGHT_FIELDS = (
    Parameter(
        name="weight_zero",
        text="Zero point of the second operand, on machines with wgt_zero=1.",
        default_text="0",
    ),
    Parameter(
        name="weight_dtype", kind=ParameterKind.TYPE, text="Type of the second operand.", default_text="int8"
    ),
)


def quantized(*, shared: tuple[str, ...] = (), weights: bool = False) -> Parameter:
    """Return the parameter of scales and zero points.

    ``shared`` are its fields that the operator also has without it. ``weights`` is as for :func:`epilogue`.
    """
    fields = (
        Parameter(
            name="scale",
            kind=ParameterKind.SCALES,
            metavar="X | FILE.npy",
            text="Multiply sums by this float32, or by one for each channel, on machines with post=1.",
        ),
        Parameter(name="input_zero", text="Zero point of the input.", default_text="0"),
        Parameter(
            name="input_dtype", kind=ParameterKind.TYPE, text="Type of the input.", default_text="int8"
        ),
        *(_WEIGHT_FIELDS if weights else ()),
        Parameter(name="output_zero", text="Zero point of the result.", default_text="0"),
        Parameter(
            name="output_dtype", kind=ParameterKind.TYPE, text="Type of the result.", default_text="int8"
        ),
        Parameter(
            name="clip", kind=ParameterKind.BOUNDS, metavar="LOW,HIGH", text="Saturate to these bounds."
        ),
        Parameter(
            name="table",
            kind=ParameterKind.TABLE,
            metavar="FILE.npy",
            text="Replace each result by one of these 256 values, on machines with tab_bytes. Entry 255 is "
            "for -1, or 255.",
        ),
        Parameter(
            name="table_dtype", kind=ParameterKind.TYPE, text="Type of the table.", default_text="int8"
        ),
        Parameter(name="table_zero", text="Zero point of the table.", default_text="0"),
        Parameter(
            name="result_scale",
            kind=ParameterKind.NUMBER,
            text="Scale of the result, if there is a residual.",
        ),
        Parameter(name="residual_scale", kind=ParameterKind.NUMBER, text="Add a residual with this scale."),
        Parameter(name="residual_zero", text="Zero point of the residual.", default_text="0"),
        Parameter(
            name="residual_dtype", kind=ParameterKind.TYPE, text="Type of the residual.", default_text="int8"
        ),
        Parameter(
            name="residual_order",
            kind=ParameterKind.ORDER,
            text="In float32, the last operation is the result's multiply-add (left), the residual's "
            "multiply-add (right), or the sum of both products (apart).",
            default_text="left",
        ),
        Parameter(
            name="residual_operation",
            kind=ParameterKind.RESIDUAL_OPERATION,
            text="Add the residual, or multiply by it on machines with res_mul=1.",
            default_text="add",
        ),
        Parameter(
            name="residual_per_channel",
            kind=ParameterKind.FLAG,
            text="The residual has one value for each channel of each picture, on machines with res_mul=1.",
        ),
        Parameter(
            name="sum_scale", kind=ParameterKind.NUMBER, text="Scale of the sum or product with the residual."
        ),
        Parameter(name="sum_zero", text="Zero point of the sum or product.", default_text="0"),
        Parameter(
            name="sum_dtype",
            kind=ParameterKind.TYPE,
            text="Type of the sum or product.",
            default_text="int8",
        ),
        Parameter(
            name="sum_clip",
            kind=ParameterKind.BOUNDS,
            metavar="LOW,HIGH",
            text="Saturate the sum or product to these bounds.",
        ),
        Parameter(
            name="approximate",
            kind=ParameterKind.FLAG,
            text="Sums and products may differ from float32 by 1.",
        ),
    )
    return Parameter(
        name="quantized",
        kind=ParameterKind.RECORD,
        text="Scales and zero points.",
        fields=tuple(one for one in fields if one.name not in shared),
        shared=shared,
        make=Quantized.from_dict,
    )


EPILOGUE_TEXT = (
    "Without --shift, --residual, --relu and --clip, {result} holds the low 8 bits of the sums. With any "
    "of them, the epilogue is: plus bias, operations in their order, shift right, plus residual, ReLU, "
    "saturation, in this order. With "
    "--scale, on machines with post=1, it is: plus bias, times the scale in float32, rounded half to even, "
    "plus the zero point, saturation, and optionally plus or times a residual, as in ONNX's quantized "
    "operators."
)

GEMM = Operator(
    name="gemm",
    make=gemm,
    parameters=(
        Parameter(name="M", text="Rows of A and C."),
        Parameter(name="N", text="Columns of B and C."),
        Parameter(name="K", text="Columns of A, rows of B."),
        Parameter(
            name="batch",
            text="Number of pairs of matrices: A is (batch, M, K), B is (batch, K, N). With --scale.",
        ),
        Parameter(name="transpose_a", kind=ParameterKind.FLAG, text="A is stored as (K, M)."),
        Parameter(name="transpose_b", kind=ParameterKind.FLAG, text="B is stored as (N, K)."),
        *epilogue("N", weights=True),
    ),
    planner=GEMM_PLANNER,
    machine="gemm8x8",
    summary="C = A @ B on int8 operands, with int32 sums and an int8 result.",
    text=f"A is (M, K), B is (K, N). {EPILOGUE_TEXT.format(result='C')}",
    examples=(
        "gemm -m 100 -n 300 -k 77 --bias --relu --shift 8 --config vta -o gemm.accel",
        "gemm -m 512 -n 512 -k 512 --explain --save-schedule mine.toml",
        "gemm -m 512 -n 512 -k 512 --schedule mine.toml --vthreads 4 -o gemm.accel",
        "gemm -m 512 -n 512 -k 512 --tile m=64,n=128 -o gemm.accel",
        "gemm -m 64 -n 64 -k 64 --operation max=-9 --operation add=channel --shift 6 -o gemm.accel",
        "gemm -m 64 -n 64 -k 32 --batch 12 --scale 0.002 --config vta-int8 -o heads.accel",
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
    text=f"data is (N, IC), weight is (OC, IC), out is (N, OC). {EPILOGUE_TEXT.format(result='out')}",
    examples=("dense --ic 512 --oc 1000 --bias --shift 8 -o dense.accel",),
)
