# Immediates are signed and 16 bits wide; an immediate of 0 is one, too.
.config tiny
.preset uop[0] .uop 0,0,0 1,0,0 2,0,0 3,0,0
.preset acc[0] .int32 0*8 0*8 -5*8 0*8

        ALU.ADD uop_end=1 use_imm=1 imm=32767
        ALU.ADD uop_begin=1 uop_end=2 use_imm=1 imm=-32768
        ALU.MAX uop_begin=2 uop_end=3 use_imm=1
        ALU.ADD uop_begin=3 uop_end=4 use_imm=1 imm=-1
        FINISH

.expect acc[0] .int32 32767*8 -32768*8 0*8 -1*8
