# SET.WGT pushes a token toward the unit before the load unit, which has none.
.config tiny-npu
bad:    SET.WGT >prev
        FINISH
.expect fault neighbour at bad
