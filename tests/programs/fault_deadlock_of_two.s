# Each waits for the other; what waits in the load unit is told.
.config tiny
bad:    LOAD.INP         <compute >compute
        GEMM uop_end=0   <load >load
        FINISH
.expect fault deadlock at bad
