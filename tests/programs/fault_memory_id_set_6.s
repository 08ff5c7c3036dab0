# A SET of a memory that has nothing to be set; the compute unit finds it.
.config tiny-int8
bad:    SET.MEM6
        FINISH
.expect fault memory-id at bad
