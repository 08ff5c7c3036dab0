/* See accel_host_steps.h. */
#include "accel_host_steps.h"

#if defined(__FAST_MATH__)
#error "compile without -ffast-math: scales are applied exactly as the network says"
#endif

static int32_t smallest_of(accel_dtype dtype) { return dtype == ACCEL_INT8 ? -128 : 0; }

static int32_t largest_of(accel_dtype dtype) { return dtype == ACCEL_INT8 ? 127 : 255; }

/* Round a number within -2^22..2^22 to the nearest integer, half to even. */
static int32_t nearest(float number) {
    int32_t whole = (int32_t)number;
    const float rest = number - (float)whole; /* exact */
    if (rest > 0.5f || (rest == 0.5f && whole % 2 != 0))
        whole++;
    else if (rest < -0.5f || (rest == -0.5f && whole % 2 != 0))
        whole--;
    return whole;
}

/* Round to the nearest integer and saturate. NaN becomes the lower bound. */
static int32_t saturated(float number, int32_t smallest, int32_t largest) {
    if (!(number > (float)smallest))
        return smallest;
    return number >= (float)largest ? largest : nearest(number);
}

/* Round a result to float: `volatile` keeps the compiler from fusing it with the next operation. */
static float to_float(float number) {
    volatile float result = number;
    return result;
}

static void quantize(const accel_scales *scales, const unsigned char *source, unsigned char *target) {
    const int32_t smallest = smallest_of(scales->dtype), largest = largest_of(scales->dtype);
    size_t at;
    for (at = 0; at < scales->values; at++) {
        const size_t channel = at / scales->inner % scales->count;
        const int32_t zero = scales->zero[channel];
        const float number = to_float(load_float(source + 4 * at) / scales->scale[channel]);
        store_integer(target, at, scales->dtype, saturated(number, smallest - zero, largest - zero) + zero);
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

/* Fill in the scale that all values of a tensor share. Returns 0 if the tensor has none. */
static int scales_of(const accel_tensor *tensor, accel_scales *scales) {
    if (!tensor || bytes_of(tensor->dtype) != 1 || !(tensor->scale > 0.0f))
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
    uint32_t index[ACCEL_MAX_RANK] = {0};
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

static void look_up_channels(const accel_channel_lookup *one, const unsigned char *source,
                             unsigned char *target) {
    size_t outer, channel, at;
    for (outer = 0; outer < one->outer; outer++)
        for (channel = 0; channel < one->channels; channel++)
            for (at = 0; at < one->inner; at++)
                *target++ = one->tables[channel * 256 + *source++];
}

/* e to the power of `number`, which is at most 0. */
static double exponential(double number) {
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
            float largest = load_float(source + start);
            for (n = 1; n < one->count; n++) {
                const float value = load_float(source + start + n * step);
                if (!(value <= largest))
                    largest = value;
            }
            for (n = 0; n < one->count; n++)
                total += exponential((double)load_float(source + start + n * step) - (double)largest);
            for (n = 0; n < one->count; n++) {
                const double value = (double)load_float(source + start + n * step) - (double)largest;
                store_float(target + start + n * step, (float)(exponential(value) / total));
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
    const int32_t smallest = smallest_of(one->dtype), largest = largest_of(one->dtype);
    uint32_t index[ACCEL_MAX_RANK] = {0};
    size_t left = 0, right = 0, at;
    for (at = 0;; at++) {
        const int floats = one->dtype == ACCEL_FLOAT32;
        const float x = floats ? load_float(source + 4 * left) : (float)load_integer(source, left, one->dtype);
        const float y = floats ? load_float(other + 4 * right) : (float)load_integer(other, right, one->dtype);
        float result = 0.0f;
        uint32_t k = one->rank;
        switch (one->operation) {
        case ACCEL_ADD_FLOAT:
            result = to_float(x + y);
            break;
        case ACCEL_SUBTRACT_FLOAT:
            result = to_float(x - y);
            break;
        case ACCEL_MULTIPLY_FLOAT:
            result = to_float(x * y);
            break;
        case ACCEL_ADD:
            result = fused(x, one->a, fused(y, one->b, one->c));
            break;
        case ACCEL_MULTIPLY:
            result = to_float((x - (float)one->source_zero) * (y - (float)one->other_zero));
            result = to_float(to_float(result * one->a) + one->c);
            break;
        }
        if (floats)
            store_float(target + 4 * at, result);
        else
            store_integer(target, at, one->dtype, saturated(result, smallest, largest));
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

/* Advance to the next index. Returns 0 after the last one. */
static int step_index(uint32_t *index, const uint32_t *sizes, uint32_t rank) {
    while (rank-- > 0) {
        if (++index[rank] < sizes[rank])
            return 1;
        index[rank] = 0;
    }
    return 0;
}

/* The mean of a window of the plane whose values begin at number `first`. */
static float mean_of(const accel_means *one, const unsigned char *source, size_t first, const uint32_t *window) {
    uint32_t tap[ACCEL_MAX_RANK] = {0};
    float total = 0.0f, count = 0.0f;
    do {
        size_t at = 0;
        uint32_t k;
        int within = 1;
        for (k = 0; k < one->rank; k++) {
            const uint64_t position = (uint64_t)window[k] * one->strides[k] + (uint64_t)tap[k] * one->dilations[k];
            if (position < one->begin[k] || position - one->begin[k] >= one->sizes[k])
                within = 0;
            else
                at = at * one->sizes[k] + (size_t)(position - one->begin[k]);
        }
        if (within) {
            float value;
            if (one->dtype == ACCEL_FLOAT32)
                value = load_float(source + 4 * (first + at));
            else
                value = to_float((float)(load_integer(source, first + at, one->dtype) - one->source_zero) *
                                one->source_scale);
            total = to_float(total + value);
        }
        if (within || one->count_padding)
            count += 1.0f;
    } while (step_index(tap, one->kernel, one->rank));
    return to_float(total / count);
}

static void means(const accel_means *one, const unsigned char *source, unsigned char *target) {
    const int32_t smallest = smallest_of(one->dtype), largest = largest_of(one->dtype);
    size_t plane, size = 1, at = 0;
    uint32_t k;
    for (k = 0; k < one->rank; k++)
        size *= one->sizes[k];
    for (plane = 0; plane < one->planes; plane++) {
        uint32_t window[ACCEL_MAX_RANK] = {0};
        do {
            const float mean = mean_of(one, source, plane * size, window);
            if (one->dtype == ACCEL_FLOAT32) {
                store_float(target + 4 * at, mean);
            } else {
                const float number = to_float(to_float(mean / one->target_scale) + (float)one->target_zero);
                store_integer(target, at, one->dtype, saturated(number, smallest, largest));
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

int accel_host_step(const accel_step *step, const unsigned char *source, const unsigned char *other,
                    unsigned char *target) {
    switch (step->kind) {
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
    case ACCEL_STEP_CHANNEL_LOOKUP:
        look_up_channels(step->detail, source, target);
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
        return prepare(step->detail, source, target);
    default:
        return ACCEL_ERROR_ARGUMENT;
    }
    return ACCEL_OK;
}
