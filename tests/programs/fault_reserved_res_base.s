# A LOAD.RES fills what comes next; it names no element.
.config tiny-int8
bad:    LOAD.RES sram_base=1 y_size=1 x_size=1
        FINISH
.expect fault reserved at bad
