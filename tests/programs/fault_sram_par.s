# A LOAD beyond the 16 elements of par.
.config tiny-int8
        LOAD.PAR sram_base=15 y_size=1 x_size=1
bad:    LOAD.PAR sram_base=15 y_size=2 x_size=1
        FINISH
.expect fault sram-range at bad
