# Two taps cannot be one element.
.config tiny-int8
        SET.ACC taps=1 step=0
bad:    SET.ACC taps=2 step=0
        FINISH
.expect fault reserved at bad
