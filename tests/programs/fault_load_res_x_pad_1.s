# A LOAD.RES has no pads.
.config tiny-int8
bad:    LOAD.RES y_size=1 x_size=1 x_pad_1=1
        FINISH
.expect fault store-pad at bad
