# A LOAD beyond the four elements of tab.
.config tiny-npu
        LOAD.TAB sram_base=3 y_size=1 x_size=1
bad:    LOAD.TAB sram_base=3 y_size=2 x_size=1
        FINISH
.expect fault sram-range at bad
