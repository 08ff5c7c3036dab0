# The queue of the compute unit is full, so that fetch never comes to the LOAD that would send the token.
.config tiny compute_queue=2
bad:    GEMM uop_end=0   <load
        GEMM uop_end=0
        GEMM uop_end=0
        LOAD.INP         >compute
        FINISH
.expect fault deadlock at bad
