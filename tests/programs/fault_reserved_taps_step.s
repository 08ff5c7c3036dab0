# Every other element is in two of four banks, so there are two taps at most.
.config tiny-int8
        SET.ACC taps=2 step=2
bad:    SET.ACC taps=3 step=2
        FINISH
.expect fault reserved at bad
