# A transfer beyond its scratchpad is refused as a whole.
.config tiny
.preset inp[126] .int8 9*8
bad:    STORE.OUT sram_base=127 y_size=2 x_size=1 x_stride=1
        FINISH
.expect fault sram-range at bad
.expect inp[126] .int8 9*8
