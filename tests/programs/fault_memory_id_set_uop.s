# A SET of a memory that has nothing to be set; the compute unit finds it when its tokens are there.
.config tiny-int8
        LOAD.INP                    >compute
        STORE.OUT                   >compute
bad:    SET.UOP                     <load <store >load >store
        FINISH
.expect fault memory-id at bad
