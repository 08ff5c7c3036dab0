/* The accelerator as software sees it: find it, start a program, wait for it.
 *
 * C99, without a library: memory and registers are reached through callbacks. `accel package` puts this file
 * into every package, and docs/package.md explains it.
 */
#ifndef ACCEL_DRIVER_H
#define ACCEL_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return: ACCEL_OK, a positive `enum accel_cause` (accel_registers.h) where the machine ended a
 * program with an error, or one of these. */
enum accel_status {
    ACCEL_OK = 0,
    ACCEL_ERROR_REGISTER = -1, /* the callback for registers failed, or the machine refused a register */
    ACCEL_ERROR_MEMORY = -2,   /* the callback for memory failed */
    ACCEL_ERROR_NO_DEVICE = -3, /* there is no accelerator, or one with another register map */
    ACCEL_ERROR_MACHINE = -4,  /* the program was compiled for a machine with another geometry */
    ACCEL_ERROR_BUSY = -5,     /* a run is going on */
    ACCEL_ERROR_REFUSED = -6,  /* the machine did not start: its settings are bad */
    ACCEL_ERROR_TIMEOUT = -7,  /* the run had not ended in time, and was stopped */
    ACCEL_ERROR_ARGUMENT = -8, /* an argument is missing or out of range */
    ACCEL_ERROR_CONTENT = -9,  /* memory does not hold what was loaded */
    ACCEL_ERROR_VALUE = -10,   /* an input has a value that the program was not compiled for */
    ACCEL_ERROR_HUNG = -11     /* the run was stopped, but the memory's bus does not take what it is offered */
};

/* One accelerator. Fill in the callbacks and settings, zero the rest. Callbacks return 0 if all went well.
 *
 * Memory is what the accelerator's AXI4 port reaches, by its addresses. What write_memory has written must be
 * visible to the accelerator when it returns, and read_memory must see what the accelerator has written: where
 * the processor has a data cache in between, clean it after writing and invalidate it before reading. */
typedef struct accel_device {
    void *context; /* handed to the callbacks */
    int (*read_register)(void *context, uint32_t offset, uint32_t *word);
    int (*write_register)(void *context, uint32_t offset, uint32_t word);
    int (*read_memory)(void *context, uint64_t address, void *bytes, size_t count);
    int (*write_memory)(void *context, uint64_t address, const void *bytes, size_t count);
    int (*pause)(void *context); /* between two looks at a run; may be NULL; not 0: time is up */

    uint64_t base;       /* address of the memory that a package gets, a multiple of 4096 */
    uint64_t max_cycles; /* the machine ends a longer run with ACCEL_CAUSE_LIMIT; 0: no limit */
    uint64_t max_polls;  /* looks at the status of a run before ACCEL_ERROR_TIMEOUT; 0: no limit */
    uint32_t bus_timeout; /* cycles in which a bus that owes something does nothing before the machine ends
                             the run with ACCEL_CAUSE_TIMEOUT; 0: no limit */

    uint64_t cycles;      /* out: of the last run, or of all streams of the last accel_network_run */
    uint32_t fault_index; /* out: the instruction at fault, valid where a function returned a cause */
} accel_device;

/* A register that must hold a value. */
typedef struct accel_identity {
    uint32_t offset;
    uint32_t value;
} accel_identity;

/* Whether there is an accelerator with the register map of accel_registers.h, and with these values. */
int accel_identify(accel_device *device, const accel_identity *identities, size_t count);

/* Start a program and return at once.
 *
 * window, window_bytes: the memory that it may touch; the window's address is a multiple of 4096.
 * program: address of the first instruction; instructions: how many. */
int accel_start(accel_device *device, uint64_t window, uint64_t window_bytes, uint64_t program,
                uint32_t instructions);

/* Wait until the run has ended; what it has written is in memory then. A run that takes too long is stopped. */
int accel_wait(accel_device *device);

/* End the run that is going on: it may have written a part of its outputs. If the bus has not answered everything
 * after so many looks at the status (at least one), the run is given up: answers that come later are dropped.
 * ACCEL_ERROR_HUNG if that cannot be, since AXI does not allow to take back what is offered: only a reset of the
 * accelerator together with its memory's bus helps then. */
int accel_stop(accel_device *device, uint64_t polls);

/* Whether the machine raises its pin `irq` when a run has ended; accel_wait takes it down. */
int accel_enable_interrupt(accel_device *device, int on);

/* A register of two words, as the counters are: the low word's offset, from accel_registers.h. */
int accel_read_wide(accel_device *device, uint32_t low_offset, uint64_t *value);

/* What a function returned, in words. */
const char *accel_message(int status);

#ifdef __cplusplus
}
#endif

#endif
