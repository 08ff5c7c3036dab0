// A design between the two pins of a serial line, and the line's other end. Bits take BOARD_CYCLES cycles.

#include "Vmodel.h"
#include "verilated.h"

#include <cstdint>
#include <deque>

namespace {

constexpr unsigned BITS = 10; // of a byte, with start and stop bit
constexpr unsigned BYTE = BITS * BOARD_CYCLES;

struct Board {
    VerilatedContext context;
    Vmodel top{&context};
    std::deque<uint8_t> sending, received;
    unsigned sent = BYTE, seen = BYTE; // cycles since the start bit began
    unsigned out = 1, in = 0;          // bits of the byte on the line

    // Cycles until so many bytes have come and the line has been quiet for two, but at most `most`.
    void run(uint64_t most) {
        unsigned quiet = 0;
        for (uint64_t cycle = 0; cycle < most && (received.empty() || quiet < 2 * BYTE); cycle++) {
            step();
            quiet = seen == BYTE && sending.empty() ? quiet + 1 : 0;
        }
    }

    void reset() {
        top.rst = 1;
        top.rx = 1;
        for (int cycle = 0; cycle < 4; cycle++)
            clock();
        top.rst = 0;
        sending.clear();
        received.clear();
        sent = seen = BYTE;
    }

private:
    void clock() {
        top.clk = 0;
        top.eval();
        top.clk = 1;
        top.eval();
    }

    void step() {
        if (sent == BYTE && !sending.empty()) {
            out = unsigned(sending.front()) << 1 | 1u << (BITS - 1);
            sending.pop_front();
            sent = 0;
        }
        top.rx = sent == BYTE || (out >> sent / BOARD_CYCLES & 1);
        if (sent < BYTE)
            sent++;
        clock();
        if (seen == BYTE && !top.tx) {
            seen = 0;
            in = 0;
        }
        if (seen < BYTE) {
            if (seen % BOARD_CYCLES == BOARD_CYCLES / 2)
                in |= unsigned(top.tx) << seen / BOARD_CYCLES;
            if (++seen == BYTE && in >> (BITS - 1))
                received.push_back(uint8_t(in >> 1));
        }
    }
};

} // namespace

extern "C" {

void *board_new() { return new Board; }
void board_delete(void *board) { delete static_cast<Board *>(board); }
void board_reset(void *board) { static_cast<Board *>(board)->reset(); }

void board_send(void *board, const uint8_t *bytes, uint64_t count) {
    auto &sending = static_cast<Board *>(board)->sending;
    sending.insert(sending.end(), bytes, bytes + count);
}

// Runs up to so many cycles; returns how many bytes were received, at most `room`.
uint64_t board_receive(void *board, uint8_t *bytes, uint64_t room, uint64_t cycles) {
    auto &self = *static_cast<Board *>(board);
    self.run(cycles);
    uint64_t count = 0;
    for (; count < room && !self.received.empty(); count++) {
        bytes[count] = self.received.front();
        self.received.pop_front();
    }
    return count;
}
}
