# The store unit has no next one, also when it loads tables.
.config tiny-npu
bad:    LOAD.TAB y_size=1 x_size=1 >next
        FINISH
.expect fault neighbour at bad
