# Depthwise and other MACs, one behind the other without a gap, each with its own sums; GEMM is as ever.
.config tiny-int8
.preset uop[0] .uop 0,0,0 1,2,0
.preset inp[0] .int16 1 2 3 4  10 20 30 40  100 200 -100 -200  5 6 7 8
.preset wgt[0] .int8 1 1 0 0  1 0 1 0  0 1 0 1  0 0 1 0

        SET.ACC taps=2 step=1
        MAC overwrite=1 uop_end=2
        MAC depthwise=1 uop_end=2
        GEMM uop_end=2
        MAC depthwise=1 uop_end=2
        MAC uop_end=2
        FINISH

.expect acc[0] .int32 31 16 78 9
.expect acc[1] .int32 1110 400 14 -300
