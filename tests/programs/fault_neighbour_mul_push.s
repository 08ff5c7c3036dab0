# The store unit has no next one, also when it multiplies.
.config tiny-npu
bad:    STORE.MUL y_size=1 x_size=1 >next
        FINISH
.expect fault neighbour at bad
