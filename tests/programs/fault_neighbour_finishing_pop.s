# The store unit has no next one, whatever it executes.
.config tiny-int8
bad:    LOAD.PAR y_size=1 x_size=1 <next
        LOAD.RES y_size=1 x_size=1 <next
        STORE.REQ y_size=1 x_size=1 <next
        STORE.ADD y_size=1 x_size=1 <next
        SET.OUT <next
        SET.SUM <next
        FINISH
.expect fault neighbour at bad
