# The element of par goes with the rows or with the elements of a row, not with both.
.config tiny-int8
.dram
y:      .int8 9*4
bad:    STORE.REQ dram_base=y y_size=1 x_size=1 par_y=1 par_x=1
        FINISH
.expect fault reserved at bad
.expect dram[y] .int8 9*4
