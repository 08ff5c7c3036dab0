# An overwriting MAC over a loop that does not move dst leaves the products of its last iteration.
.config tiny-int8
.preset uop[0] .uop 0,0,0 1,0,1
.preset inp[0] .int16 1 0 0 0  2 0 0 0  3 0 0 0  4 0 0 0  5 0 0 0  6 0 0 0
.preset wgt[0] .int8 1*16 10*16 100*16

        MAC overwrite=1 uop_end=2 iter_out=2 iter_in=3 dst_factor_out=2 src_factor_out=3 src_factor_in=1 wgt_factor_out=1
        FINISH

.expect acc[0] .int32 3*4 30*4 60*4 600*4
