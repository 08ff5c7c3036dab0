# Micro-ops run strictly in order, each on what those before have written: prefix sums, and a doubling chain.
.config tiny
.preset uop[0] .uop 1,0,0 9,9,0
.preset acc[0] .int32 1*8 1*8 1*8 1*8 1*8
.preset acc[9] .int32 3*8

        ALU.ADD uop_end=1 iter_in=4 dst_factor_in=1 src_factor_in=1
        ALU.ADD uop_begin=1 uop_end=2 iter_out=2 iter_in=3
        FINISH

.expect acc[0] .int32 1*8 2*8 3*8 4*8 5*8
.expect acc[9] .int32 192*8
