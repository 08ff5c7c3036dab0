# More residuals than res has elements.
.config tiny-int8
bad:    LOAD.RES y_size=1 x_size=17
        FINISH
.expect fault residual-full at bad
