# Sums wrap at 32 bits, in both directions.
.config tiny
.preset uop[0] .uop 0,0,0
.preset inp[0] .int8 -128 -128 -128 -128
.preset wgt[0] .int8 -128*16 127*16
.preset acc[0] .int32 2147483647 2147418113 0 -1  -2147483648 -2147418624 0 -1

        GEMM uop_end=1
        FINISH

# +65536 for the first four rows, -65024 for the others
.expect acc[0] .int32 -2147418113 -2147483647 65536 65535  2147418624 -2147483648 -65024 -65025
