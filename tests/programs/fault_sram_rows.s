# A transfer beyond its scratchpad is refused as a whole.
.config tiny
.preset inp[126] .int8 9*8
bad:    LOAD.INP y_size=65535 x_size=65535
        FINISH
.expect fault sram-range at bad
.expect inp[126] .int8 9*8
