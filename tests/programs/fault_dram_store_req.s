# A STORE.REQ beyond the window: its elements have four bytes.
.config tiny-int8 mem_size=8KiB
.code 0
bad:    STORE.REQ dram_base=2047 y_size=1 x_size=2
        FINISH
.expect fault dram-range at bad
