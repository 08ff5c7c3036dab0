# src beyond inp: an overwriting MAC looks at it, unlike a GEMM that resets.
.config tiny-int8
.preset uop[0] .uop 0,100,0
.preset inp[100] .int16 1*4
.preset wgt[0] .int8 1*16
        GEMM reset=1 uop_end=1 iter_in=2 src_factor_in=28
bad:    MAC overwrite=1 uop_end=1 iter_in=2 src_factor_in=28
        FINISH
.expect fault src-index at bad
.expect acc[0] .int32 4*4
