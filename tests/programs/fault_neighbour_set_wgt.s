# A token flag of SET.WGT toward the unit before the load unit, which has none.
.config tiny-int8 wgt_zero=1
bad:    SET.WGT zero=-129 <prev
        FINISH
.expect fault neighbour at bad
