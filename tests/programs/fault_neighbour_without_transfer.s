# A token flag toward a unit that does not exist.
.config tiny
bad:    STORE.OUT <next
        FINISH
.expect fault neighbour at bad
