# Tokens that an earlier run has left are there; those left over stay.
.config tiny
.preset uop[0] .uop 0,0,0
.tokens load>compute=2 compute>store=1 store>compute=255

        GEMM uop_end=0   <load <store
        STORE.OUT        <compute
        FINISH           <load

.expect tokens store>compute=254
