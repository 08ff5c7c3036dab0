/* Steps that the host computes, and access to values of host arrays. Internal: software includes accel_network.h.
 *
 * Arrays may have any alignment: values are copied byte by byte.
 */
#ifndef ACCEL_HOST_STEPS_H
#define ACCEL_HOST_STEPS_H

#include "accel_network.h"

#define ACCEL_MAX_RANK 16 /* dimensions that loops over an array can have */

static inline void copy_bytes(void *target, const void *source, size_t count) {
    unsigned char *to = target;
    const unsigned char *from = source;
    size_t at;
    for (at = 0; at < count; at++)
        to[at] = from[at];
}

static inline float load_float(const unsigned char *from) {
    float value;
    copy_bytes(&value, from, sizeof value);
    return value;
}

static inline void store_float(unsigned char *to, float value) { copy_bytes(to, &value, sizeof value); }

static inline size_t bytes_of(accel_dtype dtype) { return dtype == ACCEL_INT8 || dtype == ACCEL_UINT8 ? 1 : 4; }

/* The integer at number `at` of a host array. */
static inline int32_t load_integer(const unsigned char *array, size_t at, accel_dtype dtype) {
    int32_t value;
    if (dtype == ACCEL_UINT8)
        return array[at];
    if (dtype == ACCEL_INT8)
        return array[at] < 128 ? array[at] : (int32_t)array[at] - 256;
    copy_bytes(&value, array + 4 * at, sizeof value);
    return value;
}

static inline void store_integer(unsigned char *array, size_t at, accel_dtype dtype, int32_t value) {
    if (bytes_of(dtype) == 1)
        array[at] = (unsigned char)((uint32_t)value & 0xffu);
    else
        copy_bytes(array + 4 * at, &value, sizeof value);
}

/* Compute a step of any kind but PACK, RUN, UNPACK and VIEW.
 *
 * Returns ACCEL_ERROR_VALUE if an input has a value that the program was not compiled for. */
int accel_host_step(const accel_step *step, const unsigned char *source, const unsigned char *other,
                    unsigned char *target);

#endif
