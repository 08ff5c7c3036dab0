"""Convolutions and transposed ones."""

from accel.compiler.operators.operator import Operator
from accel.compiler.operators.parameter import Joint, Kind, Parameter
from accel.compiler.operators.products import AFTER, BATCH, epilogue
from accel.compiler.ops.conv import conv2d
from accel.compiler.ops.conv_transpose import conv2d_transpose
from accel.compiler.plans.conv_default import CONV_PLANNER

HEIGHT = Parameter(name="H", short=False, text="Height of an input.")
WIDTH = Parameter(name="W", short=False, text="Width of an input.")
SIZE = Joint(name="size", of=("H", "W"), form="H[xW]", text="Height and width of an input.")
PADDING = "P | Y,X | TOP,LEFT,BOTTOM,RIGHT"
"""How what surrounds inputs is written."""

_SIZES = (
    BATCH,
    Parameter(name="IC", text="Input channels."),
    HEIGHT,
    WIDTH,
    Parameter(name="OC", text="Output channels."),
    Parameter(name="kernel", kind=Kind.PAIR, form="KH[xKW]", text="Size of the kernel."),
)

CONV2D = Operator(
    name="conv2d",
    make=conv2d,
    parameters=(
        *_SIZES,
        Parameter(name="stride", kind=Kind.PAIR, form="SY[xSX]", text="Down and right."),
        Parameter(name="padding", kind=Kind.SIDES, form=PADDING, text="Zeros around each input."),
        Parameter(
            name="dilation",
            kind=Kind.PAIR,
            form="DY[xDX]",
            text="Distance of what neighbours in the kernel meet.",
        ),
        Parameter(name="groups", text="Of channels; as many as IC: depthwise."),
        *epilogue("OC"),
    ),
    joint=(SIZE,),
    planner=CONV_PLANNER,
    summary="A two-dimensional convolution on int8 operands, with int32 sums and an int8 result.",
    text="data is (N, IC, H, W), weight is (OC, IC / groups, KH, KW), out is (N, OC, OH, OW). "
    + AFTER.format(result="out"),
    examples=(
        "conv2d --ic 64 --oc 64 --size 56 --kernel 3 --padding 1 --bias --shift 8 -o c2.accel",
        "conv2d --ic 3 --oc 8 --size 20x30 --kernel 5x3 --stride 2x1 --padding 2,1 -o conv.accel",
        "conv2d --ic 128 --oc 128 --groups 128 --size 56 --kernel 3 --padding 1 -o depthwise.accel",
        "conv2d --ic 64 --oc 64 --size 56 --kernel 3 --padding 1 --tile oc=32,h=8 -o c2.accel",
    ),
)

CONV2D_TRANSPOSE = Operator(
    name="conv2d_transpose",
    make=conv2d_transpose,
    parameters=(
        *_SIZES,
        Parameter(
            name="stride",
            kind=Kind.PAIR,
            form="SY[xSX]",
            text="Distance in the output of neighbours in the input.",
        ),
        Parameter(name="padding", kind=Kind.SIDES, form=PADDING, text="Cut off the output."),
        Parameter(
            name="output_padding",
            kind=Kind.PAIR,
            form="PY[xPX]",
            text="Added to the output, below and on the right.",
        ),
        *epilogue("OC")[:-1],
    ),
    joint=(SIZE,),
    planner=CONV_PLANNER,
    summary="A transposed two-dimensional convolution on int8 operands, with int32 sums and an int8 result.",
    text="data is (N, IC, H, W), weight is (IC, OC, KH, KW), out is (N, OC, OH, OW) with "
    "OH = (H - 1) * stride + KH + output padding - padding above and below. What follows the sums is as in "
    "conv2d.",
    examples=("conv2d-transpose --ic 64 --oc 32 --size 28 --kernel 4 --stride 2 --padding 1 -o up.accel",),
)
