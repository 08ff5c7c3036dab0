# A MAC without iterations or micro-ops writes nothing, and waits for tokens and sends them all the same.
.config tiny-int8
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 7*4

        LOAD.INP                              >compute
        STORE.OUT                             >compute
        MAC overwrite=1 uop_end=1 iter_out=0  <load >store
        MAC overwrite=1 uop_end=1 iter_in=0   <store >load
        MAC uop_begin=5 uop_end=5             >load >store
        FINISH

.expect acc[0] .int32 7*4
.expect tokens compute>load=2 compute>store=2
