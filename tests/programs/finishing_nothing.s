# Without rows or elements nothing is moved, and nothing is checked but the neighbours if a row is empty.
.config tiny-int8
.dram
y:      .int8 9*8

        LOAD.PAR  sram_base=999 y_size=1 x_pad_0=1
        LOAD.RES  sram_base=3 y_size=2 y_pad_1=1
        LOAD.RES  x_size=40
        STORE.REQ dram_base=y y_size=1 par=999 par_y=1 par_x=1
        STORE.ADD dram_base=y x_size=3
        FINISH

.expect dram[y] .int8 9*8
