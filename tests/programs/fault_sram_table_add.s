# A table beyond the four of tab, also when the store unit combines its bytes with residuals.
.config tiny-npu
        LOAD.RES y_size=1 x_size=1
bad:    STORE.ADD y_size=1 x_size=1 table=31
        FINISH
.expect fault sram-range at bad
