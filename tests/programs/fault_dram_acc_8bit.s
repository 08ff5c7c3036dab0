# A LOAD beyond the window is refused as a whole.
.config tiny mem_size=8KiB mem_base=0x1000
.preset inp[0] .int8 9*8
bad:    LOAD.ACC_8BIT dram_base=1024 y_size=1 x_size=1
        FINISH
.expect fault dram-range at bad
.expect inp[0] .int8 9*8
