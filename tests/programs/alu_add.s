# ADD wraps at 32 bits, with an immediate and of two accumulators.
.config tiny
.preset uop[0] .uop 0,1,0 2,2,0
.preset acc[0]
        .int32 2147483647 -2147483648 -1 1 0 5 -100 7
        .int32 1 -1 1 -1 0 -7 -1000 7
        .int32 2147483647 -2147483648 -1 32768 0 5 -100 7

        ALU.ADD uop_end=1
        ALU.ADD uop_begin=1 uop_end=2 use_imm=1 imm=-32768
        FINISH

.expect acc[0] .int32 -2147483648 2147483647 0 0 0 -2 -1100 14
.expect acc[2] .int32 2147450879 2147450880 -32769 0 -32768 -32763 -32868 -32761
