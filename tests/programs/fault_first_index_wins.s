# dst, src and wgt are all out of range in the second micro-op: dst is told.
.config tiny uop_bytes=8 inp_bytes=8 wgt_bytes=64 acc_bytes=64
.preset uop[0] .uop 1,1,1
.preset inp[1] .int8 1*4
.preset wgt[1] .int8 1*32
.preset acc[1] .int32 0*8

bad:    GEMM uop_end=1 iter_in=2 dst_factor_in=1 src_factor_in=1 wgt_factor_in=1
        FINISH
.expect fault dst-index at bad
.expect acc[1] .int32 4*8
