# MUL keeps the low 32 bits, with an immediate and of two accumulators.
.config tiny
.preset uop[0] .uop 0,1,0 2,2,0
.preset acc[0]
        .int32 65536 65536 -65536 2147483647 -2147483648 3 -3 123456789
        .int32 65535 65536 65536 2147483647 -1 -7 -7 1000
        .int32 65536 131072 -1 2147483647 -2147483648 3 -3 0

        ALU.MUL uop_end=1
        ALU.MUL uop_begin=1 uop_end=2 use_imm=1 imm=-32768
        FINISH

.expect acc[0] .int32 -65536 0 0 1 -2147483648 -21 21 -1097262584
.expect acc[2] .int32 -2147483648 0 32768 32768 0 -98304 98304 0
