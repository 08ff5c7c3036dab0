# A transfer beyond its scratchpad is refused as a whole.
.config tiny
.preset inp[126] .int8 9*8
bad:    LOAD.INP sram_base=129 x_size=1
        FINISH
.expect fault sram-range at bad
.expect inp[126] .int8 9*8
