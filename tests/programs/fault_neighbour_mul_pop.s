# The store unit has no next one, also when it multiplies.
.config tiny-int8 tab_bytes=512 res_mul=1 wgt_zero=1
bad:    STORE.MUL y_size=1 x_size=1 <next
        FINISH
.expect fault neighbour at bad
