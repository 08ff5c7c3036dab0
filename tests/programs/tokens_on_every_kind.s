# Every kind of instruction pops and pushes, also those that move nothing; FINISH obeys its flags.
.config tiny
.preset uop[0] .uop 0,0,0

        LOAD.INP                      >compute
        LOAD.WGT                      >compute
        LOAD.INP                      >compute
        LOAD.WGT                      >compute
        STORE.OUT                     >compute
        LOAD.UOP                      <load >load
        GEMM uop_end=0                <load >store
        LOAD.INP                      <compute
        STORE.OUT                     <compute
        ALU.ADD use_imm=1 uop_end=0   <load >load >store
        LOAD.ACC                      >load
        FINISH                        <load <store >load >store

.expect tokens compute>load=3 compute>store=2
