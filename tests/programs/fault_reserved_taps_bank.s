# Elements four apart are in one bank of four.
.config tiny-int8
        SET.ACC taps=1 step=4
bad:    SET.ACC taps=2 step=4
        FINISH
.expect fault reserved at bad
