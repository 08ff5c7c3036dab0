# src beyond acc, by its factor.
.config tiny
.preset uop[0] .uop 0,120,0
.preset acc[0] .int32 0*8
.preset acc[120] .int32 1*8

bad:    ALU.ADD uop_end=1 iter_in=2 src_factor_in=8
        FINISH
.expect fault src-index at bad
.expect acc[0] .int32 1*8
