# A STORE without rows uses no element of tab. Its first element must still not be beyond the end.
.config tiny-npu
        STORE.REQ y_size=0 x_size=1 table=5
        STORE.REQ y_size=1 x_size=0 table=31
bad:    STORE.REQ y_size=0 x_size=1 table=6
        FINISH
.expect fault sram-range at bad
