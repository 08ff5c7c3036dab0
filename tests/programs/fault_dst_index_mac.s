# dst beyond acc, of a MAC that overwrites; the iteration before has.
.config tiny-int8
.preset uop[0] .uop 100,0,0
.preset inp[0] .int16 1*4
.preset wgt[0] .int8 1*16
bad:    MAC overwrite=1 uop_end=1 iter_in=2 dst_factor_in=28
        FINISH
.expect fault dst-index at bad
.expect acc[100] .int32 4*4
