# LOAD fills uop, wgt, inp and acc; STORE writes out.
.config tiny
bad:    LOAD.MEM7 y_size=1 x_size=1
        FINISH
.expect fault memory-id at bad
