# GEMM and depthwise MAC multiply all nine bits of both operands, up to 255 * -255.
.config tiny-npu
.preset uop[0] .uop 0,0,0 1,1,0 2,0,1
.preset inp[0] .int16 255 -255 255 -255  -256 -256 -1 1
.preset wgt[1] .int16 255*4 -255*4 -256 255 -256 255 1 -1 1 -1
.preset acc[0] .int32 0*12
.dram 0
    .int8 -1*8 -128*8

        SET.WGT zero=0 unsigned=1
        LOAD.WGT y_size=1 x_size=1  >compute
        SET.ACC taps=2 step=1       <load
        GEMM uop_end=2
        MAC depthwise=1 uop_begin=2 uop_end=3
        FINISH

# wgt[0] is two rows of 255 and two of 128
.expect acc[0] .int32 0*4  -130560 -130560 -65536 -65536
.expect acc[2] .int32 -255 130305 -65535 -256
