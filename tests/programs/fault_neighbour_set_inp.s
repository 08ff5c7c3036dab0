# A token flag of a SET in the load unit toward the unit before, before its zero point counts.
.config tiny-int8
bad:    SET.INP zero=128 <prev
        FINISH
.expect fault neighbour at bad
