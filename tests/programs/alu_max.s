# MAX, with an immediate and of two accumulators.
.config tiny
.preset uop[0] .uop 0,1,0 2,2,0
.preset acc[0]
        .int32 -2147483648 -6 -5 -4 0 5 6 2147483647
        .int32 2147483647 0 -6 -4 -1 6 5 -2147483648
        .int32 -2147483648 -6 -5 -4 0 5 6 2147483647

        ALU.MAX uop_end=1
        ALU.MAX uop_begin=1 uop_end=2 use_imm=1 imm=32767
        FINISH

.expect acc[0] .int32 2147483647 0 -5 -4 0 6 6 2147483647
.expect acc[2] .int32 32767*7 2147483647
