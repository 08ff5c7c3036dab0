# A counter of one bit holds one token.
.config tiny token_bits=1
        LOAD.INP   >compute
bad:    LOAD.INP   >compute
        LOAD.UOP   <load
        LOAD.UOP   <load
        FINISH
.limit cycles=100000
.expect fault token-overflow at bad
