# A token flag toward a unit that does not exist.
.config tiny
bad:    STORE.OUT y_size=1 x_size=1 >next
        FINISH
.expect fault neighbour at bad
