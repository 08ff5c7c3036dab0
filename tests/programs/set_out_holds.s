# SET.OUT and SET.SUM hold until the next of their kind, each for itself; a SET changes nothing of STOREs before it.
.config tiny-int8 write_latency=40
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 1*8
y:      .int8 99*20
.preset acc[0] .int32 9*4

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.RES dram_base=r y_size=1 x_size=2
        SET.OUT high=100
        STORE.REQ dram_base=y y_size=1 x_size=1
        SET.SUM high=4 left_multiplier=1 right_multiplier=1
        STORE.REQ dram_base=y+1 y_size=1 x_size=1
        STORE.ADD dram_base=y+2 y_size=1 x_size=1
        SET.OUT zero=-9 low=-100 high=100
        STORE.REQ dram_base=y+3 y_size=1 x_size=1
        STORE.ADD dram_base=y+4 y_size=1 x_size=1
        FINISH

.expect dram[y] .int8 9*4 9*4 4*4 0*4 1*4
