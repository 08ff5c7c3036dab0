# The element of par goes with the rows or with the elements of a row, not with both; before residuals are missed.
.config tiny-npu
bad:    STORE.MUL y_size=1 x_size=1 par_y=1 par_x=1
        FINISH
.expect fault reserved at bad
