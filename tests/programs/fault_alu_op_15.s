# A number of ALU_HIGH that no operation has.
.config tiny block_out=4 alu_ops=+t_gap,t_product,t_sum,t_zeros,t_table,t_even,t_nor,t_saturate,t_range,t_and
.preset uop[0] .uop 0,0,0
bad:    ALU.OP15 uop_end=1
        FINISH
.expect fault alu-op at bad
