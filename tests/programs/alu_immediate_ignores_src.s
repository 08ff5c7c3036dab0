# An immediate operation reads acc[dst] and no src, which is out of range here.
.config tiny
.preset uop[0] .uop 1,127,0
.preset acc[1] .int32 5*8

        ALU.ADD uop_end=1 iter_in=3 src_factor_in=1 use_imm=1 imm=2
        FINISH

.expect acc[1] .int32 11*8
