# A transfer beyond its scratchpad is refused as a whole.
.config tiny
.preset inp[126] .int8 9*8
bad:    LOAD.ACC sram_base=120 y_size=3 x_size=3 x_stride=3
        FINISH
.expect fault sram-range at bad
.expect inp[126] .int8 9*8
