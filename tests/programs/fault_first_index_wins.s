# dst, src and wgt are all out of range in the second iteration: dst is told.
.config tiny
.preset uop[0] .uop 127,127,127
.preset inp[127] .int8 1*4
.preset wgt[127] .int8 1*32
.preset acc[127] .int32 0*8

bad:    GEMM uop_end=1 iter_in=2 dst_factor_in=1 src_factor_in=1 wgt_factor_in=1
        FINISH
.expect fault dst-index at bad
.expect acc[127] .int32 4*8
