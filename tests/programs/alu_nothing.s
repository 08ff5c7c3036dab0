# Empty loops of ALU do nothing.
.config tiny
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 9*8

        ALU.ADD uop_end=1 iter_out=0 use_imm=1 imm=1
        ALU.ADD uop_end=1 iter_in=0 use_imm=1 imm=1
        ALU.MUL uop_begin=2 uop_end=1
        FINISH

.expect acc[0] .int32 9*8
