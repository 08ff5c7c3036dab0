# The same on a monolithic pipeline: the STORE is never followed by the LOAD that it waits for.
.config tiny serial=1
.preset uop[0] .uop 0,0,0

first:  STORE.OUT        <compute
        GEMM uop_end=0   >store
        FINISH

.expect fault deadlock at first
