# src beyond inp, at the second micro-op. Its field is as wide as acc needs.
.config tiny inp_bytes=128 wgt_bytes=64
.preset uop[0] .uop 0,1,0 1,32,0
.preset inp[0] .int8 1*8
.preset wgt[0] .int8 1*32
.preset acc[0] .int32 0*16

bad:    GEMM uop_end=2
        FINISH
.expect fault src-index at bad
.expect acc[0] .int32 4*8 0*8
