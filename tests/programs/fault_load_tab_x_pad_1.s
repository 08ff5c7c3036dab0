# A LOAD.TAB has no pads.
.config tiny-npu
bad:    LOAD.TAB y_size=1 x_size=1 x_pad_1=1
        FINISH
.expect fault store-pad at bad
