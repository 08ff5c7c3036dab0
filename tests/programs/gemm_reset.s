# With reset GEMM writes zeros, and does not look at src and wgt, which are out of range here.
.config tiny
.preset uop[0] .uop 3,127,1 5,0,0
.preset acc[3] .int32 9*32

        GEMM reset=1 uop_end=2 iter_in=300 src_factor_in=31 wgt_factor_in=1
        FINISH

.expect acc[3] .int32 0*8 9*8 0*8 9*8
