# A transfer beyond its scratchpad is refused as a whole.
.config tiny
.preset inp[126] .int8 9*8
bad:    LOAD.INP sram_base=127 x_size=1 y_pad_0=2
        FINISH
.expect fault sram-range at bad
.expect inp[126] .int8 9*8
