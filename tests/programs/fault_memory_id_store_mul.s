# Only machines with res_mul=1 multiply by residuals.
.config tiny-int8
bad:    STORE.ACC_8BIT y_size=1 x_size=1
        FINISH
.expect fault memory-id at bad
