# Tables beyond the window: elements of tab have 256 bytes.
.config tiny-npu mem_size=8KiB
.code 0
        LOAD.TAB dram_base=31 y_size=1 x_size=1
bad:    LOAD.TAB dram_base=31 y_size=1 x_size=2
        FINISH
.expect fault dram-range at bad
