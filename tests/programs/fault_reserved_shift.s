# Shifts go up to 41.
.config tiny-int8
        SET.OUT shift=41
bad:    SET.OUT shift=42
        FINISH
.expect fault reserved at bad
