// What Verilator's writer of FST files asks of the library of this name, so that it need not be installed:
// valid LZ4 blocks of literals only. The writer keeps data as it is where that is smaller.
#pragma once

#include <cstring>

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

inline int LZ4_compress_default(const char *source, char *target, int size, int) {
    constexpr int SHORT = 15, BYTE = 255;
    char *at = target;
    *at++ = char((size < SHORT ? size : SHORT) << 4);
    if (size >= SHORT) {
        int rest = size - SHORT;
        for (; rest >= BYTE; rest -= BYTE)
            *at++ = char(BYTE);
        *at++ = char(rest);
    }
    std::memcpy(at, source, size_t(size));
    return int(at - target) + size;
}
