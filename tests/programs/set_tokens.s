# SETs pop and push tokens like any instruction.
.config tiny-int8

        SET.INP zero=1          >compute
        SET.ACC unsigned=1      <load >load >store
        SET.INP                 <compute >compute
        STORE.OUT               <compute >compute
        SET.ACC                 <load <store >load
        FINISH

.expect tokens compute>load=1
