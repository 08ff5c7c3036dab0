"""The operators conv2d and conv2d_transpose."""

from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.declared_products import BATCH, EPILOGUE_TEXT, epilogue
from accel.compiler.operators.operator_parameters import JointParameter, Parameter, ParameterKind
from accel.compiler.ops.conv2d import conv2d
from accel.compiler.ops.conv2d_transpose import conv2d_transpose
from accel.compiler.plans.conv_planner import CONV_PLANNER

HEIGHT = Parameter(name="H", has_short_option=False, text="Height of an input.")
WIDTH = Parameter(name="W", has_short_option=False, text="Width of an input.")
SIZE = JointParameter(name="size", names=("H", "W"), metavar="H[xW]", text="Height and width of an input.")
PADDING = "P | Y,X | TOP,LEFT,BOTTOM,RIGHT"

_SIZES = (
    BATCH,
    Parameter(name="IC", text="Input channels."),
    HEIGHT,
    WIDTH,
    Parameter(name="OC", text="Output channels."),
    Parameter(name="kernel", kind=ParameterKind.PAIR, metavar="KH[xKW]", text="Size of the kernel."),
)

CONV2D = Operator(
    name="conv2d",
    make=conv2d,
    parameters=(
        *_SIZES,
        Parameter(
            name="stride",
            kind=ParameterKind.PAIR,
            metavar="SY[xSX]",
            text="Steps of windows down and to the right.",
        ),
        Parameter(name="padding", kind=ParameterKind.SIDES, metavar=PADDING, text="Zeros around each input."),
        Parameter(
            name="dilation",
            kind=ParameterKind.PAIR,
            metavar="DY[xDX]",
            text="Distance of the input values that neighbouring taps read.",
        ),
        Parameter(name="groups", text="Groups of channels; with IC groups, the convolution is depthwise."),
        *epilogue("OC"),
    ),
    joint_parameters=(SIZE,),
    planner=CONV_PLANNER,
    summary="A two-dimensional convolution on int8 operands, with int32 sums and an int8 result.",
    text="data is (N, IC, H, W), weight is (OC, IC / groups, KH, KW), out is (N, OC, OH, OW). "
    + EPILOGUE_TEXT.format(result="out"),
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
            kind=ParameterKind.PAIR,
            metavar="SY[xSX]",
            text="Distance in the output of neighbouring inputs.",
        ),
        Parameter(name="padding", kind=ParameterKind.SIDES, metavar=PADDING, text="Cut off the output."),
        Parameter(
            name="output_padding",
            kind=ParameterKind.PAIR,
            metavar="PY[xPX]",
            text="Added to the output, below and on the right.",
        ),
        *epilogue("OC"),
    ),
    joint_parameters=(SIZE,),
    planner=CONV_PLANNER,
    summary="A transposed two-dimensional convolution on int8 operands, with int32 sums and an int8 result.",
    text="data is (N, IC, H, W), weight is (IC, OC, KH, KW), out is (N, OC, OH, OW) with "
    "OH = (H - 1) * stride + KH + output padding - padding above and below. The epilogue is that of conv2d.",
    examples=("conv2d-transpose --ic 64 --oc 32 --size 28 --kernel 4 --stride 2 --padding 1 -o up.accel",),
)
