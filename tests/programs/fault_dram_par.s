# Biases and scales beyond the window: elements of par have 32 bytes.
.config tiny-int8 mem_size=8KiB
.code 0
        LOAD.PAR dram_base=255 y_size=1 x_size=1
bad:    LOAD.PAR dram_base=255 y_size=1 x_size=2
        FINISH
.expect fault dram-range at bad
