/* Load and run packaged networks and programs.
 *
 * `accel package` generates the tables of these types. docs/how-to/deploy-to-firmware.md explains their use.
 */
#ifndef ACCEL_NETWORK_H
#define ACCEL_NETWORK_H

#include "accel_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum accel_dtype { ACCEL_INT8, ACCEL_UINT8, ACCEL_INT32, ACCEL_FLOAT32 } accel_dtype;

/* An input or an output: an array of this shape in row-major order, of int8_t, uint8_t, int32_t or float.
 * An integer represents the number (value - zero) * scale; scale is 0 if there is no scale, or one per channel. */
typedef struct accel_tensor {
    const char *name; /* as in the model */
    accel_dtype dtype;
    float scale;
    int32_t zero;
    uint32_t rank;
    const uint32_t *shape;
    size_t bytes;
} accel_tensor;

/* A range of memory with constant content. */
typedef struct accel_segment {
    uint64_t offset; /* from the package's base */
    uint32_t file;
    size_t file_offset;
    size_t bytes;
    uint32_t crc; /* CRC-32 as in zlib and Ethernet */
} accel_segment;

/* A program of the machine. Offsets are from the package's base. */
typedef struct accel_stream {
    uint64_t window, window_bytes;
    uint64_t program;
    uint32_t instructions;
} accel_stream;

/* A view of a plain array: the value of the view at index (i0, i1, ...) is that of the plain array whose index along d
 * is the sum over k of coefficients[d * viewed_rank + k] * ik, minus before[d]; `fill` if the array has none. */
typedef struct accel_view {
    accel_dtype dtype;
    uint32_t rank, viewed_rank;
    const uint32_t *shape; /* of the plain array */
    const uint32_t *sizes;
    const int64_t *before;
    const int64_t *coefficients;
    int32_t fill;
} accel_view;

/* A tensor in memory: packed[k] counts to sizes[k], and the plain array's index along d is the sum over k of
 * coefficients[d * packed_rank + k] * packed[k]. If that is beyond shape[d], memory holds zero.
 * With a view, `shape` is the view's. */
typedef struct accel_layout {
    uint64_t offset; /* from the package's base */
    accel_dtype dtype;
    uint32_t rank, packed_rank;
    const uint32_t *shape;
    const uint32_t *sizes;
    const uint32_t *coefficients;
    const accel_view *view; /* or NULL */
} accel_layout;

/* Scales and zero points of an array: value number n has those of channel n / inner % count. */
typedef struct accel_scales {
    accel_dtype dtype; /* of the integers */
    size_t values, inner, count;
    const float *scale;
    const int32_t *zero;
} accel_scales;

/* A copy between arrays. Starts and strides count values. */
typedef struct accel_move {
    uint32_t value_bytes, rank;
    const uint32_t *sizes;
    const int32_t *source_strides;
    const int32_t *target_strides;
    uint32_t source_start, target_start;
} accel_move;

/* Constant content: value_bytes bytes, repeated up to `bytes`. */
typedef struct accel_fill {
    const void *values;
    size_t value_bytes, bytes;
} accel_fill;

/* target[n] = table[(uint8_t)source[n]] */
typedef struct accel_lookup {
    const uint8_t *table;
    size_t values;
} accel_lookup;

/* A table of 256 results for each channel: value i of a channel is at (outer * channels + channel) * inner + i. */
typedef struct accel_channel_lookup {
    const uint8_t *tables;
    size_t outer, channels, inner;
} accel_channel_lookup;

/* Softmax of float along an axis of `count` values: value n of the axis is at (outer * count + n) * inner + i. */
typedef struct accel_softmax {
    size_t outer, count, inner;
} accel_softmax;

/* A function of two arrays, elementwise. Strides count values and are 0 along an axis that an operand repeats.
 *
 * Floats: source + other, source - other, source * other. Integers, rounded to the nearest and saturated:
 * ADD fma(source, a, fma(other, b, c)), MULTIPLY (source - source_zero) * (other - other_zero) * a + c. */
typedef enum accel_operation {
    ACCEL_ADD_FLOAT,
    ACCEL_SUBTRACT_FLOAT,
    ACCEL_MULTIPLY_FLOAT,
    ACCEL_ADD,
    ACCEL_MULTIPLY
} accel_operation;

typedef struct accel_binary {
    accel_operation operation;
    accel_dtype dtype; /* of source, other and target */
    uint32_t rank;
    const uint32_t *sizes;
    const uint32_t *source_strides;
    const uint32_t *other_strides;
    int32_t source_zero, other_zero;
    float a, b, c;
} accel_binary;

/* Means of windows. Integers are dequantized first; a window is summed in float, in the order of its taps. */
typedef struct accel_means {
    accel_dtype dtype;
    size_t planes;
    uint32_t rank, count_padding;
    const uint32_t *sizes; /* of a plane */
    const uint32_t *outputs;
    const uint32_t *kernel;
    const uint32_t *strides;
    const uint32_t *dilations;
    const uint32_t *begin; /* padding before */
    float source_scale, target_scale;
    int32_t source_zero, target_zero;
} accel_means;

/* target[n] = clamp(source[n], low, high) + offset, in int32; a value outside of accepted_* is an error. */
typedef struct accel_prepare {
    size_t values;
    int64_t accepted_low, accepted_high, low, high, offset;
} accel_prepare;

typedef enum accel_step_kind {
    ACCEL_STEP_PACK,       /* source to memory: accel_layout */
    ACCEL_STEP_RUN,        /* accel_stream */
    ACCEL_STEP_UNPACK,     /* memory to target: accel_layout */
    ACCEL_STEP_QUANTIZE,   /* accel_scales */
    ACCEL_STEP_DEQUANTIZE, /* accel_scales */
    ACCEL_STEP_MOVE,       /* accel_move */
    ACCEL_STEP_VIEW,       /* accel_view: target is the view of source */
    ACCEL_STEP_FILL,       /* accel_fill */
    ACCEL_STEP_LOOKUP,     /* accel_lookup */
    ACCEL_STEP_SOFTMAX,    /* accel_softmax */
    ACCEL_STEP_BINARY,     /* accel_binary */
    ACCEL_STEP_MEANS,      /* accel_means */
    ACCEL_STEP_PREPARE,    /* accel_prepare */
    ACCEL_STEP_CHANNEL_LOOKUP /* accel_channel_lookup */
} accel_step_kind;

typedef struct accel_step {
    accel_step_kind kind;
    uint32_t source, other, target; /* arrays */
    const void *detail;
} accel_step;

typedef enum accel_place { ACCEL_INPUT, ACCEL_OUTPUT, ACCEL_WORKSPACE } accel_place;

/* An array of the host: an input, an output, or a part of the workspace. */
typedef struct accel_array {
    accel_place place;
    size_t at; /* number of the input or output, or offset in the workspace in bytes */
} accel_array;

typedef struct accel_network {
    const char *name;
    uint64_t memory_bytes;  /* memory of the package from its base, a multiple of 4096 */
    size_t workspace_bytes; /* memory of the processor that accel_network_run needs */
    const accel_identity *identities;
    size_t identity_count;
    const accel_tensor *inputs;
    size_t input_count;
    const accel_tensor *outputs;
    size_t output_count;
    const size_t *file_bytes;
    size_t file_count;
    const accel_segment *segments;
    size_t segment_count;
    const accel_array *arrays;
    const accel_step *steps;
    size_t step_count;
} accel_network;

/* Check the machine, and write instructions and constants to memory; needed once.
 *
 * files: contents of the package's .bin files, in the order of the generated header. */
int accel_network_load(accel_device *device, const accel_network *network, const void *const *files);

/* Read back and compare the memory that accel_network_load wrote; ACCEL_ERROR_CONTENT if it differs. */
int accel_network_check(accel_device *device, const accel_network *network);

/* Run a loaded network.
 *
 * inputs, outputs: one array each, in the order of the generated header, of any alignment.
 * workspace: workspace_bytes of any alignment; may be NULL if that is 0. */
int accel_network_run(accel_device *device, const accel_network *network, const void *const *inputs,
                      void *const *outputs, void *workspace);

/* Quantize an input of int8_t or uint8_t, or dequantize an output.
 *
 * tensor: one of network->inputs or network->outputs, with one scale. numbers, values: as many as it has values. */
int accel_quantize(const accel_tensor *tensor, const float *numbers, void *values);
int accel_dequantize(const accel_tensor *tensor, const void *values, float *numbers);

#ifdef __cplusplus
}
#endif

#endif
