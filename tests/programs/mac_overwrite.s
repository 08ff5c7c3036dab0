# With overwrite a MAC writes sums whatever the accumulators hold; of several micro-ops with one dst the last wins.
.config tiny-int8
.preset uop[0] .uop 0,0,0 1,1,0 0,2,1 2,0,1 0,1,1
.preset inp[0] .int16 1 2 3 4  5 6 7 8  -128*4
.preset wgt[0] .int8 1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1
.preset wgt[1] .int8 -128*16

        MAC overwrite=1 uop_end=5
        FINISH

.expect acc[0] .int32 -3328*4  5 6 7 8  -1280*4
