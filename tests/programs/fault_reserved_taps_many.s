# There are as many taps as a wgt element has columns, at most.
.config tiny-int8
        SET.ACC taps=4 step=1
bad:    SET.ACC taps=5 step=1
        FINISH
.expect fault reserved at bad
