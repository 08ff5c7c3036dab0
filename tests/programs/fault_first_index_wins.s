# dst, src and wgt are all out of range in one micro-op: dst is told.
.config tiny inp_bytes=8 wgt_bytes=64
.preset uop[0] .uop 127,127,1
bad:    GEMM uop_end=1 iter_in=2 dst_factor_in=1 src_factor_in=1 wgt_factor_in=1
        FINISH
.expect fault src-index at bad
