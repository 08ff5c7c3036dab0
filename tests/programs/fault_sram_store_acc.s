# A STORE.ACC beyond the accumulators.
.config tiny-int8
bad:    STORE.ACC sram_base=127 y_size=2 x_size=1 x_stride=1
        FINISH
.expect fault sram-range at bad
