# wgt beyond wgt, in the second iteration of a MAC.
.config tiny-int8
.preset uop[0] .uop 0,0,100
.preset inp[0] .int16 1*4
.preset wgt[100] .int8 1*16
.preset acc[0] .int32 0*4
bad:    MAC uop_end=1 iter_out=2 iter_in=3 wgt_factor_out=28
        FINISH
.expect fault wgt-index at bad
.expect acc[0] .int32 12*4
