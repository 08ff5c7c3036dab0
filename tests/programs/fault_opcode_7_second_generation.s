# The opcode that does not exist on machines of the second generation either.
.config tiny-int8
bad:    UNKNOWN7
        FINISH
.expect fault opcode at bad
