/* See accel_network.h. */
#include "accel_network.h"

#include "accel_host_steps.h"

#ifndef ACCEL_CHUNK_BYTES
#define ACCEL_CHUNK_BYTES 256 /* stack space for one call of read_memory or write_memory; a multiple of 4 */
#endif

static int read_memory(accel_device *device, uint64_t address, void *bytes, size_t count) {
    if (!device->read_memory)
        return ACCEL_ERROR_ARGUMENT;
    return device->read_memory(device->context, address, bytes, count) ? ACCEL_ERROR_MEMORY : ACCEL_OK;
}

static int write_memory(accel_device *device, uint64_t address, const void *bytes, size_t count) {
    if (!device->write_memory)
        return ACCEL_ERROR_ARGUMENT;
    return device->write_memory(device->context, address, bytes, count) ? ACCEL_ERROR_MEMORY : ACCEL_OK;
}

static uint32_t crc32_update(uint32_t crc, const unsigned char *bytes, size_t count) {
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
    if (!network || !files || !device || device->base % 4096u)
        return ACCEL_ERROR_ARGUMENT;
    status = accel_identify(device, network->identities, network->identity_count);
    for (at = 0; !status && at < network->segment_count; at++) {
        const accel_segment *segment = &network->segments[at];
        const unsigned char *content = files[segment->file];
        if (!content)
            return ACCEL_ERROR_ARGUMENT;
        content += segment->file_offset;
        status = write_memory(device, device->base + segment->offset, content, segment->bytes);
    }
    return status;
}

int accel_network_check(accel_device *device, const accel_network *network) {
    unsigned char chunk[ACCEL_CHUNK_BYTES];
    size_t at, done;
    int status;
    if (!network || !device)
        return ACCEL_ERROR_ARGUMENT;
    for (at = 0; at < network->segment_count; at++) {
        const accel_segment *segment = &network->segments[at];
        uint32_t crc = 0;
        for (done = 0; done < segment->bytes;) {
            const size_t rest = segment->bytes - done, now = rest < sizeof chunk ? rest : sizeof chunk;
            status = read_memory(device, device->base + segment->offset + done, chunk, now);
            if (status)
                return status;
            crc = crc32_update(crc, chunk, now);
            done += now;
        }
        if (crc != segment->crc)
            return ACCEL_ERROR_CONTENT;
    }
    return ACCEL_OK;
}

/* A position in a packed tensor, in the order of memory, and the index of its value in the plain array. */
typedef struct walk {
    const accel_layout *layout;
    uint32_t packed[ACCEL_MAX_RANK];
    uint64_t index[ACCEL_MAX_RANK];
} walk;

static void begin(walk *cursor, const accel_layout *layout) {
    uint32_t at;
    cursor->layout = layout;
    for (at = 0; at < ACCEL_MAX_RANK; at++) {
        cursor->packed[at] = 0;
        cursor->index[at] = 0;
    }
}

/* Find the number of the value in the plain array. Returns 0 if the position is padding. */
static int locate(const walk *cursor, size_t *found) {
    const accel_layout *layout = cursor->layout;
    size_t at = 0;
    uint32_t d;
    for (d = 0; d < layout->rank; d++) {
        if (cursor->index[d] >= layout->shape[d])
            return 0;
        at = at * layout->shape[d] + (size_t)cursor->index[d];
    }
    *found = at;
    return 1;
}

/* Find the number of the plain array's value that a view has at `number`. Returns 0 if there is none. */
static int locate_viewed(const accel_view *view, size_t number, size_t *found) {
    uint64_t index[ACCEL_MAX_RANK];
    size_t at = 0;
    uint32_t k = view->viewed_rank, d;
    for (d = 0; d < view->rank; d++)
        index[d] = 0 - (uint64_t)view->before[d]; /* modulo 2^64, as all of it */
    while (k-- > 0) {
        const uint64_t position = number % view->sizes[k];
        number /= view->sizes[k];
        for (d = 0; d < view->rank; d++)
            index[d] += (uint64_t)view->coefficients[d * view->viewed_rank + k] * position;
    }
    for (d = 0; d < view->rank; d++) {
        if (index[d] >= view->shape[d])
            return 0;
        at = at * view->shape[d] + (size_t)index[d];
    }
    *found = at;
    return 1;
}

/* The integer that a view has at `number`: a value of the array or the fill. */
static int32_t viewed_value(const accel_view *view, size_t number, const unsigned char *array) {
    size_t at;
    return locate_viewed(view, number, &at) ? load_integer(array, at, view->dtype) : view->fill;
}

static void copy_viewed(const accel_view *view, const unsigned char *source, unsigned char *target) {
    size_t at, count = 1;
    uint32_t k;
    for (k = 0; k < view->viewed_rank; k++)
        count *= view->sizes[k];
    for (at = 0; at < count; at++)
        store_integer(target, at, view->dtype, viewed_value(view, at, source));
}

/* Advance to the next value. Returns 0 after the last one. */
static int advance(walk *cursor) {
    const accel_layout *layout = cursor->layout;
    uint32_t k = layout->packed_rank, d;
    while (k-- > 0) {
        const uint32_t *column = layout->coefficients + k;
        const uint32_t size = layout->sizes[k];
        if (cursor->packed[k] + 1 < size) {
            cursor->packed[k]++;
            for (d = 0; d < layout->rank; d++)
                cursor->index[d] += column[d * layout->packed_rank];
            return 1;
        }
        cursor->packed[k] = 0;
        for (d = 0; d < layout->rank; d++)
            cursor->index[d] -= (uint64_t)column[d * layout->packed_rank] * (size - 1);
    }
    return 0;
}

static int pack(accel_device *device, const accel_layout *layout, const unsigned char *array) {
    unsigned char chunk[ACCEL_CHUNK_BYTES];
    const size_t value_bytes = bytes_of(layout->dtype);
    uint64_t address = device->base + layout->offset;
    size_t filled = 0, at, byte;
    int more, status;
    walk cursor;
    begin(&cursor, layout);
    do {
        uint32_t value = 0;
        if (locate(&cursor, &at))
            value = (uint32_t)(layout->view ? viewed_value(layout->view, at, array) : load_integer(array, at, layout->dtype));
        for (byte = 0; byte < value_bytes; byte++) /* little-endian */
            chunk[filled++] = (unsigned char)(value >> 8 * byte & 0xffu);
        more = advance(&cursor);
        if (!more || filled + value_bytes > sizeof chunk) {
            status = write_memory(device, address, chunk, filled);
            if (status)
                return status;
            address += filled;
            filled = 0;
        }
    } while (more);
    return ACCEL_OK;
}

static int unpack(accel_device *device, const accel_layout *layout, unsigned char *array) {
    unsigned char chunk[ACCEL_CHUNK_BYTES];
    const size_t value_bytes = bytes_of(layout->dtype);
    const size_t capacity = sizeof chunk - sizeof chunk % value_bytes;
    uint64_t address = device->base + layout->offset, left = value_bytes;
    size_t taken = 0, held = 0, at, byte;
    uint32_t k;
    int status;
    walk cursor;
    for (k = 0; k < layout->packed_rank; k++)
        left *= layout->sizes[k];
    begin(&cursor, layout);
    do {
        uint32_t value = 0;
        if (taken == held) {
            held = left < capacity ? (size_t)left : capacity;
            status = read_memory(device, address, chunk, held);
            if (status)
                return status;
            address += held;
            left -= held;
            taken = 0;
        }
        for (byte = 0; byte < value_bytes; byte++)
            value |= (uint32_t)chunk[taken++] << 8 * byte;
        if (locate(&cursor, &at) && (!layout->view || locate_viewed(layout->view, at, &at))) {
            int32_t number;
            copy_bytes(&number, &value, sizeof number);
            store_integer(array, at, layout->dtype, number);
        }
    } while (advance(&cursor));
    return ACCEL_OK;
}

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

/* The address of an array that a step reads. */
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
        case ACCEL_STEP_VIEW:
            copy_viewed(step->detail, source, target);
            break;
        default:
            status = accel_host_step(step, source, other, target);
        }
    }
    device->cycles = cycles;
    return status;
}
