# The store unit has no next one.
.config tiny-int8
bad:    STORE.ACC y_size=1 x_size=1 <next
        FINISH
.expect fault neighbour at bad
