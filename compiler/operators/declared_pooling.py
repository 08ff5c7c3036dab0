"""The operators avg_pool2d, max_pool2d and global_avg_pool2d."""

from accel.compiler.operators.declared_convolutions import HEIGHT, PADDING, SIZE, WIDTH
from accel.compiler.operators.declared_operator import CommandFamily, CommandVariant, Operator
from accel.compiler.operators.declared_products import BATCH, quantized
from accel.compiler.operators.operator_parameters import Parameter, ParameterKind
from accel.compiler.ops.pool2d import avg_pool2d, global_avg_pool2d, max_pool2d
from accel.compiler.plans.conv_planner import CONV_PLANNER
from accel.compiler.plans.pool_planner import POOL_PLANNER

_SIZES = (BATCH, Parameter(name="C", aliases=("channels",), text="Channels."), HEIGHT, WIDTH)
_WINDOW = (
    Parameter(name="kernel", kind=ParameterKind.PAIR, metavar="KH[xKW]", text="Size of a window."),
    Parameter(
        name="stride",
        kind=ParameterKind.PAIR,
        metavar="SY[xSX]",
        text="Steps of windows down and to the right.",
        default_text="the kernel's size",
    ),
    Parameter(name="padding", kind=ParameterKind.SIDES, metavar=PADDING, text="Padding around each input."),
    Parameter(
        name="dilation",
        kind=ParameterKind.PAIR,
        metavar="DY[xDX]",
        text="Distance of neighbouring elements of a window.",
    ),
)
_SHAPES = "data is int8 (N, C, H, W), out is int8 (N, C, OH, OW)."
_MEANS = (
    "Means are ((sum + offset) * factor) >> shift, within 1 of the exact mean; offset, factor and shift are "
    "printed. With --scale, on machines with post=1, they are sums times the scale."
)

POOL = CommandFamily(
    command="pool",
    option="--kind",
    summary="Pooling on int8 values: maxima or means over windows, or means over whole inputs.",
)

AVG_POOL2D = Operator(
    name="avg_pool2d",
    make=avg_pool2d,
    parameters=(
        *_SIZES,
        *_WINDOW,
        Parameter(
            name="count_padding",
            kind=ParameterKind.FLAG,
            text="Padding counts as zeros in means; otherwise it does not.",
        ),
        quantized(),
    ),
    joint_parameters=(SIZE,),
    planner=CONV_PLANNER,
    summary="Means over windows of int8 values.",
    text=f"{_SHAPES} {_MEANS}",
    examples=("avg-pool2d -c 64 --size 56 --kernel 2 -o mean.accel",),
    variant=CommandVariant(family=POOL, value="average"),
)

MAX_POOL2D = Operator(
    name="max_pool2d",
    make=max_pool2d,
    parameters=(
        *_SIZES,
        *_WINDOW,
        Parameter(name="dtype", kind=ParameterKind.TYPE, text="Type of the values."),
    ),
    joint_parameters=(SIZE,),
    planner=POOL_PLANNER,
    summary="Maxima over windows of int8 values.",
    text=f"{_SHAPES} Padding never counts.",
    examples=("max-pool2d -c 64 --size 112 --kernel 3 --stride 2 --padding 1 -o pool.accel",),
    variant=CommandVariant(family=POOL, value="max"),
)

GLOBAL_AVG_POOL2D = Operator(
    name="global_avg_pool2d",
    make=global_avg_pool2d,
    parameters=(*_SIZES, quantized()),
    joint_parameters=(SIZE,),
    planner=CONV_PLANNER,
    summary="Means over whole inputs of int8 values.",
    text=f"data is int8 (N, C, H, W), out is int8 (N, C, 1, 1). {_MEANS}",
    examples=("global-avg-pool2d -c 512 --size 7 -o mean.accel",),
    variant=CommandVariant(family=POOL, value="global"),
)
