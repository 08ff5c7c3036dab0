/* See accel_driver.h. */
#include "accel_driver.h"

#include "accel_registers.h"

#define PAGE_BYTES 4096u
#define INSTRUCTION_BYTES 16u
#define DRAIN_POLLS 1000u /* reads of STATUS after a stop, in which outstanding bursts may be answered */

static int get(accel_device *device, uint32_t offset, uint32_t *word) {
    if (!device || !device->read_register)
        return ACCEL_ERROR_ARGUMENT;
    return device->read_register(device->context, offset, word) ? ACCEL_ERROR_REGISTER : ACCEL_OK;
}

static int put(accel_device *device, uint32_t offset, uint32_t word) {
    if (!device || !device->write_register)
        return ACCEL_ERROR_ARGUMENT;
    return device->write_register(device->context, offset, word) ? ACCEL_ERROR_REGISTER : ACCEL_OK;
}

static int put_wide(accel_device *device, uint32_t offset, uint64_t value) {
    const int status = put(device, offset, (uint32_t)(value & 0xffffffffu));
    return status ? status : put(device, offset + 4u, (uint32_t)(value >> 32));
}

int accel_read_wide(accel_device *device, uint32_t low_offset, uint64_t *value) {
    uint32_t low = 0, high = 0;
    int status = get(device, low_offset, &low); /* the machine also latches the high word */
    if (!status)
        status = get(device, low_offset + 4u, &high);
    if (!status)
        *value = (uint64_t)high << 32 | low;
    return status;
}

int accel_identify(accel_device *device, const accel_identity *identities, size_t count) {
    uint32_t word;
    size_t at;
    int status;
    status = get(device, ACCEL_ID, &word);
    if (status)
        return status;
    if (word != ACCEL_ID_VALUE)
        return ACCEL_ERROR_NO_DEVICE;
    status = get(device, ACCEL_VERSION, &word);
    if (status)
        return status;
    if (word != ACCEL_VERSION_VALUE)
        return ACCEL_ERROR_NO_DEVICE;
    for (at = 0; at < count; at++) {
        /* Reading a register that the machine does not have fails. */
        if (get(device, identities[at].offset, &word) || word != identities[at].value)
            return ACCEL_ERROR_MACHINE;
    }
    return ACCEL_OK;
}

int accel_start(accel_device *device, uint64_t window, uint64_t window_bytes, uint64_t program,
                uint32_t instructions) {
    uint32_t word;
    int status;
    if (!device || window % PAGE_BYTES || program % INSTRUCTION_BYTES)
        return ACCEL_ERROR_ARGUMENT;
    status = get(device, ACCEL_STATUS, &word);
    if (status)
        return status;
    if (word & ACCEL_STATUS_RUNNING)
        return ACCEL_ERROR_BUSY;
    status = put_wide(device, ACCEL_PROGRAM_ADDRESS_LOW, program);
    if (!status)
        status = put(device, ACCEL_PROGRAM_LENGTH, instructions);
    if (!status)
        status = put(device, ACCEL_SERIAL, 0);
    if (!status)
        status = put_wide(device, ACCEL_MEM_BASE_LOW, window);
    if (!status)
        status = put_wide(device, ACCEL_MEM_SIZE_LOW, window_bytes);
    if (!status)
        status = put_wide(device, ACCEL_MAX_CYCLES_LOW, device->max_cycles ? device->max_cycles : UINT64_MAX);
    if (!status)
        status = put(device, ACCEL_BUS_TIMEOUT, device->bus_timeout);
    if (!status) /* drop the tokens of an earlier run that failed */
        status = put(device, ACCEL_CONTROL, ACCEL_CONTROL_CLEAR);
    if (status)
        return status;
    if (put(device, ACCEL_CONTROL, ACCEL_CONTROL_START))
        return ACCEL_ERROR_REFUSED;
    status = get(device, ACCEL_STATUS, &word); /* some buses do not report a refused write */
    if (!status && !(word & (ACCEL_STATUS_RUNNING | ACCEL_STATUS_DONE)))
        status = ACCEL_ERROR_REFUSED;
    return status;
}

int accel_stop(accel_device *device, uint64_t polls) {
    uint32_t word = 0;
    int status = put(device, ACCEL_CONTROL, ACCEL_CONTROL_STOP);
    do {
        if (!status)
            status = get(device, ACCEL_STATUS, &word);
        if (status)
            return status;
        if (!(word & ACCEL_STATUS_RUNNING))
            return put(device, ACCEL_INTERRUPT, 1);
    } while (polls && --polls);
    if (put(device, ACCEL_CONTROL, ACCEL_CONTROL_CLEAR))
        return ACCEL_ERROR_HUNG;
    status = get(device, ACCEL_STATUS, &word); /* some buses do not report a refused write */
    return status ? status : word & ACCEL_STATUS_RUNNING ? ACCEL_ERROR_HUNG : ACCEL_OK;
}

/* Stop a run that takes too long. */
static int out_of_time(accel_device *device) {
    const int status = accel_stop(device, DRAIN_POLLS);
    return status ? status : ACCEL_ERROR_TIMEOUT;
}

int accel_wait(accel_device *device) {
    uint64_t polls = 0;
    uint32_t word = 0, cause = 0;
    int status;
    if (!device)
        return ACCEL_ERROR_ARGUMENT;
    for (;;) {
        status = get(device, ACCEL_STATUS, &word);
        if (status)
            return status;
        if (word & ACCEL_STATUS_DONE)
            break;
        if (!(word & ACCEL_STATUS_RUNNING))
            return ACCEL_ERROR_ARGUMENT; /* no run was started */
        if (device->max_polls && ++polls >= device->max_polls)
            return out_of_time(device);
        if (device->pause && device->pause(device->context))
            return out_of_time(device);
    }
    status = put(device, ACCEL_INTERRUPT, 1);
    if (!status)
        status = accel_read_wide(device, ACCEL_CYCLES_LOW, &device->cycles);
    if (status || !(word & ACCEL_STATUS_ERROR))
        return status;
    status = get(device, ACCEL_FAULT_INDEX, &device->fault_index);
    if (!status)
        status = get(device, ACCEL_CAUSE, &cause);
    if (!status && (cause == 0 || cause > INT16_MAX)) /* an error must never look like success, nor like a status */
        status = ACCEL_ERROR_CAUSE;
    return status ? status : (int)cause;
}

int accel_enable_interrupt(accel_device *device, int on) {
    return put(device, ACCEL_INTERRUPT_ENABLE, on ? 1 : 0);
}

const char *accel_message(int status) {
    switch (status) {
    case ACCEL_OK:
        return "success";
    case ACCEL_ERROR_REGISTER:
        return "a register cannot be read or written";
    case ACCEL_ERROR_MEMORY:
        return "memory cannot be read or written";
    case ACCEL_ERROR_NO_DEVICE:
        return "there is no accelerator, or one with another register map";
    case ACCEL_ERROR_MACHINE:
        return "the program was compiled for a machine with another geometry";
    case ACCEL_ERROR_BUSY:
        return "a run is in progress";
    case ACCEL_ERROR_REFUSED:
        return "the machine refused to start: its settings are invalid";
    case ACCEL_ERROR_TIMEOUT:
        return "the run took too long and was stopped";
    case ACCEL_ERROR_ARGUMENT:
        return "an argument is missing or out of range";
    case ACCEL_ERROR_CONTENT:
        return "memory differs from the loaded content";
    case ACCEL_ERROR_VALUE:
        return "an input has a value that the program was not compiled for";
    case ACCEL_ERROR_HUNG:
        return "the memory bus does not accept an offered transfer; it needs a reset";
    case ACCEL_ERROR_CAUSE:
        return "the machine reports an error without a known cause";
#define ACCEL_MESSAGE(number, name, text) \
    case number:                          \
        return text;
        ACCEL_CAUSES(ACCEL_MESSAGE)
#undef ACCEL_MESSAGE
    default:
        return "no such status";
    }
}
