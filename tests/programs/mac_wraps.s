# Sums of a MAC wrap at 32 bits.
.config tiny-int8
.preset uop[0] .uop 0,0,0
.preset inp[0] .int16 127*4
.preset wgt[0] .int8 127*16
.preset acc[0] .int32 0x7fffffff 0x7fffffff -5 0

        MAC uop_end=1
        FINISH

.expect acc[0] .int32 -2147419133 -2147419133 64511 64516
