# A token flag of SET.WGT toward the unit before the load unit, which has none.
.config tiny-npu
bad:    SET.WGT zero=-129 <prev
        FINISH
.expect fault neighbour at bad
