# A token that nobody sends.
.config tiny
        LOAD.INP         >compute
bad:    GEMM uop_end=0   <load <store
        STORE.OUT        <compute
        FINISH
.expect fault deadlock at bad
