# The highest index into par counts: that of the last element of a row.
.config tiny-int8
        LOAD.RES y_size=1 x_size=3
bad:    STORE.ADD y_size=1 x_size=3 par=14 par_x=1
        FINISH
.expect fault sram-range at bad
