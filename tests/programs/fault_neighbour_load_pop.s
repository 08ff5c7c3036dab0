# A token flag toward a unit that does not exist.
.config tiny
bad:    LOAD.INP y_size=1 x_size=1 <prev
        FINISH
.expect fault neighbour at bad
