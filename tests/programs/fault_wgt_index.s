# wgt beyond wgt, in the second outer iteration.
.config tiny
.preset uop[0] .uop 0,0,100
.preset inp[0] .int8 1*4
.preset wgt[100] .int8 1*32
.preset acc[0] .int32 0*8

bad:    GEMM uop_end=1 iter_out=2 iter_in=3 wgt_factor_out=28
        FINISH
.expect fault wgt-index at bad
.expect acc[0] .int32 12*8
