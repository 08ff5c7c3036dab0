# A STORE.REQ beyond the 128 accumulators.
.config tiny-int8
bad:    STORE.REQ sram_base=127 y_size=1 x_size=2
        FINISH
.expect fault sram-range at bad
