# A token flag of a SET in the load unit toward the unit before.
.config tiny-int8
bad:    SET.INP >prev
        FINISH
.expect fault neighbour at bad
