# The store unit has no next one, whatever it executes.
.config tiny-int8
bad:    SET.SUM >next
        SET.OUT >next
        STORE.ADD y_size=1 x_size=1 >next
        STORE.REQ y_size=1 x_size=1 >next
        LOAD.RES y_size=1 x_size=1 >next
        LOAD.PAR y_size=1 x_size=1 >next
        FINISH
.expect fault neighbour at bad
