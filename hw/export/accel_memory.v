// A memory of a scratchpad as an array: a model for simulation, and the start of one's own with RAM macros.
module accel_memory #(
    parameter WIDTH = 8,   // bits of a word
    parameter DEPTH = 2,   // words
    parameter GRAIN = 8,   // bits that are written together
    parameter ADDRESS = 1  // bits of an address
) (
    input clk,
    input [WIDTH / GRAIN - 1:0] write_enable,
    input [ADDRESS - 1:0] write_address,
    input [WIDTH - 1:0] write_data,
    input read_enable,
    input [ADDRESS - 1:0] read_address,
    output reg [WIDTH - 1:0] read_data
);
    reg [WIDTH - 1:0] words [0:DEPTH - 1];
    integer part;

    always @(posedge clk) begin
        for (part = 0; part < WIDTH / GRAIN; part = part + 1)
            if (write_enable[part])
                words[write_address][part * GRAIN +: GRAIN] <= write_data[part * GRAIN +: GRAIN];
        if (read_enable)
            read_data <= words[read_address]; // before a write to the same address in this cycle
    end
endmodule
