# A counter of one bit holds one token.
.config tiny token_bits=1
        LOAD.INP   >compute
bad:    LOAD.INP   >compute
        FINISH
.expect fault token-overflow at bad
