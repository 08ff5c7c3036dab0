# With a 17th element res would be too full, whatever STOREs behind it take.
.config tiny-int8
        LOAD.RES y_size=2 x_size=8
bad:    LOAD.RES y_size=1 x_size=1
        STORE.ADD y_size=1 x_size=8
        FINISH
.expect fault residual-full at bad
