# Residuals beyond the window; that res has no room for them is found later.
.config tiny-int8 mem_size=8KiB
.code 0
        LOAD.RES dram_base=2044 y_size=1 x_size=4
bad:    LOAD.RES dram_base=2000 y_size=1 x_size=49
        FINISH
.expect fault dram-range at bad
