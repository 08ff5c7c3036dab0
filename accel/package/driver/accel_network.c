/* See accel_network.h. Arrays may have any alignment: values are copied byte by byte. */
#include "accel_network.h"

#if defined(__FAST_MATH__)
#error "compile without -ffast-math: scales are applied exactly as the network says"
#endif

#ifndef ACCEL_CHUNK_BYTES
#define ACCEL_CHUNK_BYTES 256 /* on the stack, for one call of read_memory or write_memory; a multiple of 4 */
#endif
#define MAX_RANK 16

static void copy_bytes(void *target, const void *source, size_t count) {
    unsigned char *to = target;
    const unsigned char *from = source;
    size_t at;
    for (at = 0; at < count; at++)
        to[at] = from[at];
}

static float load_float(const unsigned char *from) {
    float value;
    copy_bytes(&value, from, sizeof value);
    return value;
}

static void store_float(unsigned char *to, float value) { copy_bytes(to, &value, sizeof value); }

static size_t size_of(accel_dtype dtype) { return dtype == ACCEL_INT8 || dtype == ACCEL_UINT8 ? 1 : 4; }

/* An integer of the host's array. */
static int32_t load_integer(const unsigned char *array, size_t at, accel_dtype dtype) {
    int32_t value;
    if (dtype == ACCEL_UINT8)
        return array[at];
    if (dtype == ACCEL_INT8)
        return array[at] < 128 ? array[at] : (int32_t)array[at] - 256;
    copy_bytes(&value, array + 4 * at, sizeof value);
    return value;
}

static void store_integer(unsigned char *array, size_t at, accel_dtype dtype, int32_t value) {
    if (size_of(dtype) == 1)
        array[at] = (unsigned char)((uint32_t)value & 0xffu);
    else
        copy_bytes(array + 4 * at, &value, sizeof value);
}

static int32_t least_of(accel_dtype dtype) { return dtype == ACCEL_INT8 ? -128 : 0; }

static int32_t most_of(accel_dtype dtype) { return dtype == ACCEL_INT8 ? 127 : 255; }

/* --- memory ------------------------------------------------------------------------------------------ */

static uint32_t crc_of(uint32_t crc, const unsigned char *bytes, size_t count) {
    size_t at;
    int bit;
    crc = ~crc;
    for (at = 0; at < count; at++) {
        crc ^= bytes[at];
        for (bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1u ? 0xedb88320u : 0u);
    }
    return ~crc;
}

int accel_network_load(accel_device *device, const accel_network *network, const void *const *files) {
    size_t at;
    int status;
    if (!network || !files || !device || !device->write_memory || !device->read_memory || device->base % 4096u)
        return ACCEL_ERROR_ARGUMENT;
    status = accel_identify(device, network->identities, network->identity_count);
    for (at = 0; !status && at < network->segment_count; at++) {
        const accel_segment *one = &network->segments[at];
        const unsigned char *content = files[one->file];
        if (!content)
            return ACCEL_ERROR_ARGUMENT;
        content += one->file_offset;
        if (device->write_memory(device->context, device->base + one->offset, content, one->bytes))
            status = ACCEL_ERROR_MEMORY;
    }
    return status;
}

int accel_network_check(accel_device *device, const accel_network *network) {
    unsigned char chunk[ACCEL_CHUNK_BYTES];
    size_t at, done;
    if (!network || !device || !device->read_memory)
        return ACCEL_ERROR_ARGUMENT;
    for (at = 0; at < network->segment_count; at++) {
        const accel_segment *one = &network->segments[at];
        uint32_t crc = 0;
        for (done = 0; done < one->bytes;) {
            const size_t rest = one->bytes - done, now = rest < sizeof chunk ? rest : sizeof chunk;
            if (device->read_memory(device->context, device->base + one->offset + done, chunk, now))
                return ACCEL_ERROR_MEMORY;
            crc = crc_of(crc, chunk, now);
            done += now;
        }
        if (crc != one->crc)
            return ACCEL_ERROR_CONTENT;
    }
    return ACCEL_OK;
}

/* A walk through packed values in the order of memory, and where in the plain array each belongs. */
typedef struct walk {
    const accel_layout *layout;
    uint32_t packed[MAX_RANK];
    uint64_t index[MAX_RANK];
} walk;

static void begin(walk *place, const accel_layout *layout) {
    uint32_t at;
    place->layout = layout;
    for (at = 0; at < MAX_RANK; at++) {
        place->packed[at] = 0;
        place->index[at] = 0;
    }
}

/* Whether the plain array has this value, and which one it is. */
static int inside(const walk *place, size_t *found) {
    const accel_layout *layout = place->layout;
    size_t at = 0;
    uint32_t d;
    for (d = 0; d < layout->rank; d++) {
        if (place->index[d] >= layout->shape[d])
            return 0;
        at = at * layout->shape[d] + (size_t)place->index[d];
    }
    *found = at;
    return 1;
}

/* On to the next value; 0 behind the last one. */
static int advance(walk *place) {
    const accel_layout *layout = place->layout;
    uint32_t k = layout->packed_rank, d;
    while (k-- > 0) {
        const uint32_t *column = layout->coefficients + k;
        const uint32_t size = layout->sizes[k];
        if (place->packed[k] + 1 < size) {
            place->packed[k]++;
            for (d = 0; d < layout->rank; d++)
                place->index[d] += column[d * layout->packed_rank];
            return 1;
        }
        place->packed[k] = 0;
        for (d = 0; d < layout->rank; d++)
            place->index[d] -= (uint64_t)column[d * layout->packed_rank] * (size - 1);
    }
    return 0;
}

static int pack(accel_device *device, const accel_layout *layout, const unsigned char *array) {
    unsigned char chunk[ACCEL_CHUNK_BYTES];
    const size_t value_bytes = size_of(layout->dtype);
    uint64_t address = device->base + layout->offset;
    size_t filled = 0, at, byte;
    int more;
    walk place;
    begin(&place, layout);
    do {
        const uint32_t value = inside(&place, &at) ? (uint32_t)load_integer(array, at, layout->dtype) : 0;
        for (byte = 0; byte < value_bytes; byte++) /* little-endian */
            chunk[filled++] = (unsigned char)(value >> 8 * byte & 0xffu);
        more = advance(&place);
        if (!more || filled + value_bytes > sizeof chunk) {
            if (device->write_memory(device->context, address, chunk, filled))
                return ACCEL_ERROR_MEMORY;
            address += filled;
            filled = 0;
        }
    } while (more);
    return ACCEL_OK;
}

static int unpack(accel_device *device, const accel_layout *layout, unsigned char *array) {
    unsigned char chunk[ACCEL_CHUNK_BYTES];
    const size_t value_bytes = size_of(layout->dtype);
    const size_t room = sizeof chunk - sizeof chunk % value_bytes;
    uint64_t address = device->base + layout->offset, left = value_bytes;
    size_t taken = 0, held = 0, at, byte;
    uint32_t k;
    walk place;
    for (k = 0; k < layout->packed_rank; k++)
        left *= layout->sizes[k];
    begin(&place, layout);
    do {
        uint32_t value = 0;
        if (taken == held) {
            held = left < room ? (size_t)left : room;
            if (device->read_memory(device->context, address, chunk, held))
                return ACCEL_ERROR_MEMORY;
            address += held;
            left -= held;
            taken = 0;
        }
        for (byte = 0; byte < value_bytes; byte++)
            value |= (uint32_t)chunk[taken++] << 8 * byte;
        if (inside(&place, &at)) {
            int32_t number;
            copy_bytes(&number, &value, sizeof number);
            store_integer(array, at, layout->dtype, number);
        }
    } while (advance(&place));
    return ACCEL_OK;
}

/* --- what the host computes -------------------------------------------------------------------------- */

/* A number that is no farther from zero than 2^22, to the nearest integer, half to even. */
static int32_t nearest(float number) {
    int32_t whole = (int32_t)number;
    const float rest = number - (float)whole; /* exact */
    if (rest > 0.5f || (rest == 0.5f && whole % 2 != 0))
        whole++;
    else if (rest < -0.5f || (rest == -0.5f && whole % 2 != 0))
        whole--;
    return whole;
}

static void quantize(const accel_scales *scales, const unsigned char *source, unsigned char *target) {
    const int32_t least = least_of(scales->dtype), most = most_of(scales->dtype);
    size_t at;
    for (at = 0; at < scales->values; at++) {
        const size_t channel = at / scales->inner % scales->count;
        const int32_t zero = scales->zero[channel];
        const float number = (float)(load_float(source + 4 * at) / scales->scale[channel]);
        int32_t value;
        if (!(number > (float)(least - zero))) /* NaN, too */
            value = least;
        else if (number >= (float)(most - zero))
            value = most;
        else
            value = nearest(number) + zero;
        store_integer(target, at, scales->dtype, value);
    }
}

static void dequantize(const accel_scales *scales, const unsigned char *source, unsigned char *target) {
    size_t at;
    for (at = 0; at < scales->values; at++) {
        const size_t channel = at / scales->inner % scales->count;
        const int64_t value = (int64_t)load_integer(source, at, scales->dtype) - scales->zero[channel];
        store_float(target + 4 * at, (float)((float)value * scales->scale[channel]));
    }
}

/* The scale of all values of a tensor; whether it has one. */
static int scales_of(const accel_tensor *tensor, accel_scales *scales) {
    if (!tensor || size_of(tensor->dtype) != 1 || !(tensor->scale > 0.0f))
        return 0;
    scales->dtype = tensor->dtype;
    scales->values = scales->inner = tensor->bytes;
    scales->count = 1;
    scales->scale = &tensor->scale;
    scales->zero = &tensor->zero;
    return 1;
}

int accel_quantize(const accel_tensor *tensor, const float *numbers, void *values) {
    accel_scales scales;
    if (!numbers || !values || !scales_of(tensor, &scales))
        return ACCEL_ERROR_ARGUMENT;
    quantize(&scales, (const unsigned char *)numbers, values);
    return ACCEL_OK;
}

int accel_dequantize(const accel_tensor *tensor, const void *values, float *numbers) {
    accel_scales scales;
    if (!numbers || !values || !scales_of(tensor, &scales))
        return ACCEL_ERROR_ARGUMENT;
    dequantize(&scales, values, (unsigned char *)numbers);
    return ACCEL_OK;
}

static void move(const accel_move *one, const unsigned char *source, unsigned char *target) {
    uint32_t index[MAX_RANK] = {0};
    int64_t from = one->source_start, to = one->target_start;
    for (;;) {
        uint32_t k = one->rank;
        copy_bytes(target + (size_t)to * one->value_bytes, source + (size_t)from * one->value_bytes,
                   one->value_bytes);
        for (;;) {
            if (k-- == 0)
                return;
            if (index[k] + 1 < one->sizes[k]) {
                index[k]++;
                from += one->source_strides[k];
                to += one->target_strides[k];
                break;
            }
            from -= (int64_t)one->source_strides[k] * index[k];
            to -= (int64_t)one->target_strides[k] * index[k];
            index[k] = 0;
        }
    }
}

static void fill(const accel_fill *one, unsigned char *target) {
    size_t at;
    for (at = 0; at + one->value_bytes <= one->bytes; at += one->value_bytes)
        copy_bytes(target + at, one->values, one->value_bytes);
}

static void look_up(const accel_lookup *one, const unsigned char *source, unsigned char *target) {
    size_t at;
    for (at = 0; at < one->values; at++)
        target[at] = one->table[source[at]];
}

/* e to the power of a number that is not above zero. */
static double power(double number) {
    static const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
    int32_t twos, n;
    double rest, sum = 1.0, two = 0.5;
    if (!(number > -745.0))
        return number < 0.0 ? 0.0 : number; /* NaN stays */
    twos = (int32_t)(number / LN2_HIGH - 0.5);
    rest = number - twos * LN2_HIGH - twos * LN2_LOW;
    for (n = 14; n > 0; n--)
        sum = 1.0 + sum * rest / n;
    for (n = -twos; n > 0; n /= 2, two *= two)
        if (n % 2)
            sum *= two;
    return sum;
}

static void softmax(const accel_softmax *one, const unsigned char *source, unsigned char *target) {
    size_t outer, inner, n;
    for (outer = 0; outer < one->outer; outer++)
        for (inner = 0; inner < one->inner; inner++) {
            const size_t start = 4 * (outer * one->count * one->inner + inner), step = 4 * one->inner;
            double total = 0.0;
            float most = load_float(source + start);
            for (n = 1; n < one->count; n++) {
                const float value = load_float(source + start + n * step);
                if (!(value <= most))
                    most = value;
            }
            for (n = 0; n < one->count; n++)
                total += power((double)load_float(source + start + n * step) - (double)most);
            for (n = 0; n < one->count; n++) {
                const double value = (double)load_float(source + start + n * step) - (double)most;
                store_float(target + start + n * step, (float)(power(value) / total));
            }
        }
}

static int prepare(const accel_prepare *one, const unsigned char *source, unsigned char *target) {
    size_t at;
    for (at = 0; at < one->values; at++) {
        int64_t value = load_integer(source, at, ACCEL_INT32);
        if (value < one->accepted_low || value > one->accepted_high)
            return ACCEL_ERROR_VALUE;
        value = value < one->low ? one->low : value > one->high ? one->high : value;
        store_integer(target, at, ACCEL_INT32, (int32_t)(value + one->offset));
    }
    return ACCEL_OK;
}

/* --- runs -------------------------------------------------------------------------------------------- */

static int run(accel_device *device, const accel_stream *stream, uint64_t *cycles) {
    int status;
    device->cycles = 0;
    status = accel_start(device, device->base + stream->window, stream->window_bytes,
                         device->base + stream->program, stream->instructions);
    if (!status)
        status = accel_wait(device);
    *cycles += device->cycles;
    return status;
}

int accel_network_run(accel_device *device, const accel_network *network, const void *const *inputs,
                      void *const *outputs, void *workspace) {
    uint64_t cycles = 0;
    size_t at;
    int status = ACCEL_OK;
    if (!device || !network || (network->workspace_bytes && !workspace))
        return ACCEL_ERROR_ARGUMENT;
    for (at = 0; at < network->input_count; at++)
        if (!inputs || !inputs[at])
            return ACCEL_ERROR_ARGUMENT;
    for (at = 0; at < network->output_count; at++)
        if (!outputs || !outputs[at])
            return ACCEL_ERROR_ARGUMENT;
    for (at = 0; !status && at < network->step_count; at++) {
        const accel_step *step = &network->steps[at];
        const accel_array *from = &network->arrays[step->source], *to = &network->arrays[step->target];
        const unsigned char *source = NULL;
        unsigned char *target = NULL;
        if (from->place == ACCEL_INPUT)
            source = inputs[from->at];
        else if (from->place == ACCEL_OUTPUT)
            source = outputs[from->at];
        else if (workspace)
            source = (const unsigned char *)workspace + from->at;
        if (to->place == ACCEL_OUTPUT)
            target = outputs[to->at];
        else if (to->place == ACCEL_WORKSPACE && workspace)
            target = (unsigned char *)workspace + to->at;
        switch (step->kind) {
        case ACCEL_STEP_PACK:
            status = pack(device, step->detail, source);
            break;
        case ACCEL_STEP_RUN:
            status = run(device, step->detail, &cycles);
            break;
        case ACCEL_STEP_UNPACK:
            status = unpack(device, step->detail, target);
            break;
        case ACCEL_STEP_QUANTIZE:
            quantize(step->detail, source, target);
            break;
        case ACCEL_STEP_DEQUANTIZE:
            dequantize(step->detail, source, target);
            break;
        case ACCEL_STEP_MOVE:
            move(step->detail, source, target);
            break;
        case ACCEL_STEP_FILL:
            fill(step->detail, target);
            break;
        case ACCEL_STEP_LOOKUP:
            look_up(step->detail, source, target);
            break;
        case ACCEL_STEP_SOFTMAX:
            softmax(step->detail, source, target);
            break;
        case ACCEL_STEP_PREPARE:
            status = prepare(step->detail, source, target);
            break;
        }
    }
    device->cycles = cycles;
    return status;
}
