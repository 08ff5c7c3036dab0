# SHR by an immediate: arithmetic; by a negative amount to the left; beyond 31 the sign, or zero.
.config tiny
.preset uop[0] .uop 0,0,0 1,0,0 2,0,0 3,0,0 4,0,0 5,0,0 6,0,0 7,0,0
.preset acc[0]
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7

        ALU.SHR uop_begin=0 uop_end=1 use_imm=1 imm=0
        ALU.SHR uop_begin=1 uop_end=2 use_imm=1 imm=3
        ALU.SHR uop_begin=2 uop_end=3 use_imm=1 imm=31
        ALU.SHR uop_begin=3 uop_end=4 use_imm=1 imm=32767
        ALU.SHR uop_begin=4 uop_end=5 use_imm=1 imm=-3
        ALU.SHR uop_begin=5 uop_end=6 use_imm=1 imm=-31
        ALU.SHR uop_begin=6 uop_end=7 use_imm=1 imm=-32
        ALU.SHR uop_begin=7 uop_end=8 use_imm=1 imm=-32768
        FINISH

.expect acc[0]
        .int32 100 -100 -1 1 2147483647 -2147483648 7 -7
        .int32 12 -13 -1 0 268435455 -268435456 0 -1
        .int32 0 -1 -1 0 0 -1 0 -1
        .int32 0 -1 -1 0 0 -1 0 -1
        .int32 800 -800 -8 8 -8 0 56 -56
        .int32 0 0 -2147483648 -2147483648 -2147483648 0 -2147483648 -2147483648
        .int32 0*8
        .int32 0*8
