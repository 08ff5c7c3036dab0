# All that the store unit finishes outputs with pops and pushes tokens like any instruction.
.config tiny-int8

        LOAD.UOP                    >store
        LOAD.PAR  <compute >compute
        LOAD.UOP            <store  >store
        LOAD.RES  <compute >compute
        LOAD.UOP            <store  >store
        SET.OUT   <compute >compute
        LOAD.UOP            <store  >store
        SET.SUM   <compute >compute
        LOAD.UOP            <store  >store
        STORE.REQ <compute >compute
        LOAD.UOP            <store  >store
        STORE.ADD <compute >compute
        FINISH

.expect tokens store>compute=1
