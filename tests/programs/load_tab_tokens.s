# A LOAD of tables pops and pushes tokens like any instruction.
.config tiny-npu
        LOAD.UOP                    >store
        LOAD.TAB  <compute >compute
        LOAD.UOP            <store  >store
        LOAD.TAB  <compute >compute
        FINISH

.expect tokens store>compute=1
