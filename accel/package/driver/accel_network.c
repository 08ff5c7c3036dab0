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

/* Whether the plain array has a value that a view shows, and which one it is. */
static int viewed(const accel_view *view, size_t number, size_t *found) {
    uint64_t index[MAX_RANK];
    size_t at = 0;
    uint32_t k = view->viewed_rank, d;
    for (d = 0; d < view->rank; d++)
        index[d] = 0 - (uint64_t)view->before[d]; /* modulo 2^64, as all of it */
    while (k-- > 0) {
        const uint64_t place = number % view->sizes[k];
        number /= view->sizes[k];
        for (d = 0; d < view->rank; d++)
            index[d] += (uint64_t)view->coefficients[d * view->viewed_rank + k] * place;
    }
    for (d = 0; d < view->rank; d++) {
        if (index[d] >= view->shape[d])
            return 0;
        at = at * view->shape[d] + (size_t)index[d];
    }
    *found = at;
    return 1;
}

/* The integer that a view shows. */
static int32_t look(const accel_view *view, size_t number, const unsigned char *array) {
    size_t at;
    return viewed(view, number, &at) ? load_integer(array, at, view->dtype) : view->fill;
}

static void show(const accel_view *view, const unsigned char *source, unsigned char *target) {
    size_t at, count = 1;
    uint32_t k;
    for (k = 0; k < view->viewed_rank; k++)
        count *= view->sizes[k];
    for (at = 0; at < count; at++)
        store_integer(target, at, view->dtype, look(view, at, source));
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
        uint32_t value = 0;
        if (inside(&place, &at))
            value = (uint32_t)(layout->view ? look(layout->view, at, array) : load_integer(array, at, layout->dtype));
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
        if (inside(&place, &at) && (!layout->view || viewed(layout->view, at, &at))) {
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

/* The nearest integer within bounds; of NaN the lower one. */
static int32_t saturated(float number, int32_t least, int32_t most) {
    if (!(number > (float)least))
        return least;
    return number >= (float)most ? most : nearest(number);
}

/* A result as a float, not fused with what is done to it next. */
static float rounded(float number) {
    volatile float result = number;
    return result;
}

static void quantize(const accel_scales *scales, const unsigned char *source, unsigned char *target) {
    const int32_t least = least_of(scales->dtype), most = most_of(scales->dtype);
    size_t at;
    for (at = 0; at < scales->values; at++) {
        const size_t channel = at / scales->inner % scales->count;
        const int32_t zero = scales->zero[channel];
        const float number = rounded(load_float(source + 4 * at) / scales->scale[channel]);
        store_integer(target, at, scales->dtype, saturated(number, least - zero, most - zero) + zero);
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

/* a * b + c with one rounding: the product is exact in double, and the sum is rounded to odd before it is
 * rounded to float (Boldo and Melquiond, 2008). */
static float fused(float a, float b, float c) {
    const volatile double product = (double)a * (double)b;
    volatile double total = product + (double)c, back, error, rest;
    uint64_t bits;
    back = total - product;
    rest = total - back;
    error = product - rest;
    rest = (double)c - back;
    error = error + rest;
    back = total;
    copy_bytes(&bits, (const double *)&back, sizeof bits);
    if (error != 0.0 && !(bits & 1u)) {
        double odd;
        bits = (error > 0.0) == (back > 0.0) ? bits + 1 : bits - 1;
        copy_bytes(&odd, &bits, sizeof odd);
        return (float)odd;
    }
    return (float)back;
}

static void binary(const accel_binary *one, const unsigned char *source, const unsigned char *other,
                   unsigned char *target) {
    const int32_t least = least_of(one->dtype), most = most_of(one->dtype);
    uint32_t index[MAX_RANK] = {0};
    size_t left = 0, right = 0, at;
    for (at = 0;; at++) {
        const int floats = one->dtype == ACCEL_FLOAT32;
        const float x = floats ? load_float(source + 4 * left) : (float)load_integer(source, left, one->dtype);
        const float y = floats ? load_float(other + 4 * right) : (float)load_integer(other, right, one->dtype);
        float result = 0.0f;
        uint32_t k = one->rank;
        switch (one->operation) {
        case ACCEL_ADD_FLOAT:
            result = rounded(x + y);
            break;
        case ACCEL_SUBTRACT_FLOAT:
            result = rounded(x - y);
            break;
        case ACCEL_MULTIPLY_FLOAT:
            result = rounded(x * y);
            break;
        case ACCEL_ADD:
            result = fused(x, one->a, fused(y, one->b, one->c));
            break;
        case ACCEL_MULTIPLY:
            result = rounded((x - (float)one->source_zero) * (y - (float)one->other_zero));
            result = rounded(rounded(result * one->a) + one->c);
            break;
        }
        if (floats)
            store_float(target + 4 * at, result);
        else
            store_integer(target, at, one->dtype, saturated(result, least, most));
        for (;;) {
            if (k-- == 0)
                return;
            if (index[k] + 1 < one->sizes[k]) {
                index[k]++;
                left += one->source_strides[k];
                right += one->other_strides[k];
                break;
            }
            left -= (size_t)one->source_strides[k] * index[k];
            right -= (size_t)one->other_strides[k] * index[k];
            index[k] = 0;
        }
    }
}

/* On to the next index; 0 behind the last one. */
static int step_index(uint32_t *index, const uint32_t *sizes, uint32_t rank) {
    while (rank-- > 0) {
        if (++index[rank] < sizes[rank])
            return 1;
        index[rank] = 0;
    }
    return 0;
}

/* The mean of a window; first: of the plane's values. */
static float mean_of(const accel_means *one, const unsigned char *source, size_t first, const uint32_t *window) {
    uint32_t tap[MAX_RANK] = {0};
    float total = 0.0f, count = 0.0f;
    do {
        size_t at = 0;
        uint32_t k;
        int within = 1;
        for (k = 0; k < one->rank; k++) {
            const uint64_t place = (uint64_t)window[k] * one->strides[k] + (uint64_t)tap[k] * one->dilations[k];
            if (place < one->begin[k] || place - one->begin[k] >= one->sizes[k])
                within = 0;
            else
                at = at * one->sizes[k] + (size_t)(place - one->begin[k]);
        }
        if (within) {
            float value;
            if (one->dtype == ACCEL_FLOAT32)
                value = load_float(source + 4 * (first + at));
            else
                value = rounded((float)(load_integer(source, first + at, one->dtype) - one->source_zero) *
                                one->source_scale);
            total = rounded(total + value);
        }
        if (within || one->count_padding)
            count += 1.0f;
    } while (step_index(tap, one->kernel, one->rank));
    return rounded(total / count);
}

static void means(const accel_means *one, const unsigned char *source, unsigned char *target) {
    const int32_t least = least_of(one->dtype), most = most_of(one->dtype);
    size_t plane, size = 1, at = 0;
    uint32_t k;
    for (k = 0; k < one->rank; k++)
        size *= one->sizes[k];
    for (plane = 0; plane < one->planes; plane++) {
        uint32_t window[MAX_RANK] = {0};
        do {
            const float mean = mean_of(one, source, plane * size, window);
            if (one->dtype == ACCEL_FLOAT32) {
                store_float(target + 4 * at, mean);
            } else {
                const float number = rounded(rounded(mean / one->target_scale) + (float)one->target_zero);
                store_integer(target, at, one->dtype, saturated(number, least, most));
            }
            at++;
        } while (step_index(window, one->outputs, one->rank));
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

/* Where an array lies that is read. */
static const unsigned char *array_of(const accel_array *array, const void *const *inputs, void *const *outputs,
                                     const void *workspace) {
    if (array->place == ACCEL_INPUT)
        return inputs[array->at];
    if (array->place == ACCEL_OUTPUT)
        return outputs[array->at];
    return workspace ? (const unsigned char *)workspace + array->at : NULL;
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
        const accel_array *to = &network->arrays[step->target];
        const unsigned char *source = array_of(&network->arrays[step->source], inputs, outputs, workspace);
        const unsigned char *other = array_of(&network->arrays[step->other], inputs, outputs, workspace);
        unsigned char *target = NULL;
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
        case ACCEL_STEP_VIEW:
            show(step->detail, source, target);
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
        case ACCEL_STEP_BINARY:
            binary(step->detail, source, other, target);
            break;
        case ACCEL_STEP_MEANS:
            means(step->detail, source, target);
            break;
        case ACCEL_STEP_PREPARE:
            status = prepare(step->detail, source, target);
            break;
        }
    }
    device->cycles = cycles;
    return status;
}
