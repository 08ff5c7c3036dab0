# Operations that a machine declares, in one slot and in several; one of them crosses the lanes of a row.
.config tiny block_out=4 alu_ops=+t_gap,t_product,t_sum,t_zeros,t_table,t_even,t_nor,t_saturate,t_range,t_and
.preset uop[0] .uop 0,1,0 1,1,0 2,1,0
.preset acc[0] .int32 9*4 -4*4 6 7 11 12

        ALU.T_GAP uop_end=1
        ALU.T_PRODUCT uop_begin=1 uop_end=2 use_imm=1 imm=-32768
        ALU.T_SUM uop_begin=2 uop_end=3 use_imm=1 imm=6
        ALU.T_GAP uop_begin=2 uop_end=3 use_imm=1 imm=40 iter_in=2
        FINISH

# acc 0: |9 + 4| = 13; acc 1: 131072 / 2**31 rounds to 0; acc 2: 36 - 6 = 30, then |30 - 40| = 10, |10 - 40| = 30
.expect acc[0] .int32 13*4 0*4 30*4
