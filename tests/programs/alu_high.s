# Operations from number 8 on are ALU_HIGH's; loops, tokens and immediates are ALU's.
.config tiny block_out=4 alu_ops=+t_gap,t_product,t_sum,t_zeros,t_table,t_even,t_nor,t_saturate,t_range,t_and
.preset uop[0] .uop 0,20,0 1,21,0
.preset acc[0] .int32 255*4 254*4 253*4 252*4 0*4 -1*4 4660*4 7*4
.preset acc[20] .int32 15*4 12*4 10*4 9*4 6*4

        LOAD.INP >compute
        STORE.OUT >compute
        ALU.T_AND uop_end=2 iter_out=2 iter_in=2 dst_factor_out=4 dst_factor_in=2 src_factor_out=2 src_factor_in=1 <load <store >load >store
        ALU.T_EVEN reset=1 uop_begin=1 uop_end=2 use_imm=1 imm=3
        FINISH

# acc 0..3 &= 15, 12, 12, 10; acc 4..7 &= 10, 9, 9, 6; then acc 1: (12 & ~3) / 8 = 1.5 rounds to the even 2
.expect acc[0] .int32 15*4 2*4 12*4 8*4 0*4 9*4 0*4 6*4
