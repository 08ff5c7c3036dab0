# The tables, maxima and zeros of a machine's own operations.
.config tiny block_out=4 alu_ops=+t_gap,t_product,t_sum,t_zeros,t_table,t_even,t_nor,t_saturate,t_range,t_and
.preset uop[0] .uop 0,0,0 1,0,0 2,0,0 3,0,0 4,0,0
.preset acc[0] .int32 3 -9 27 4  5*4  2147483647*4  12*4  160*4

        ALU.T_RANGE uop_end=1 use_imm=1 imm=1
        ALU.T_NOR uop_begin=1 uop_end=2 use_imm=1 imm=-8
        ALU.T_SATURATE uop_begin=2 uop_end=3 use_imm=1 imm=99
        ALU.T_ZEROS uop_begin=3 uop_end=4 use_imm=1 imm=8
        ALU.T_TABLE uop_begin=4 uop_end=5 use_imm=1 imm=1
        FINISH

# 27 + 9 = 36; ~(5 | -8) = 2; saturated; 12 ^ 8 = 4 has 28 zeros in 31 bits; 10 * 10 * 10 - 700 + 1
.expect acc[0] .int32 36*4 2*4 2147483647*4 28*4 301*4
