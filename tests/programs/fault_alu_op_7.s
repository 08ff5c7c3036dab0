# An ALU operation that does not exist; so it is in a loop that is empty.
.config tiny
.preset uop[0] .uop 0,0,0
bad:    ALU.OP7 uop_end=1
        FINISH
.expect fault alu-op at bad
