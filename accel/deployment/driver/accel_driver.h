/* Driver of the accelerator: find it, start a program, wait until it ends.
 *
 * C99 without any library. Memory and registers are accessed through callbacks. `accel package` puts this file
 * into every package; docs/how-to/deploy-to-firmware.md explains it.
 */
#ifndef ACCEL_DRIVER_H
#define ACCEL_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Result of a function: ACCEL_OK, a positive `enum accel_cause` (accel_registers.h) if the machine ended a program
 * with an error, or one of these. */
enum accel_status {
    ACCEL_OK = 0,
    ACCEL_ERROR_REGISTER = -1, /* the callback for registers failed, or the machine refused a register */
    ACCEL_ERROR_MEMORY = -2,   /* the callback for memory failed */
    ACCEL_ERROR_NO_DEVICE = -3, /* there is no accelerator, or one with another register map */
    ACCEL_ERROR_MACHINE = -4,  /* the program was compiled for a machine with another geometry */
    ACCEL_ERROR_BUSY = -5,     /* a run is in progress */
    ACCEL_ERROR_REFUSED = -6,  /* the machine refused to start: its settings are invalid */
    ACCEL_ERROR_TIMEOUT = -7,  /* the run took too long and was stopped */
    ACCEL_ERROR_ARGUMENT = -8, /* an argument or a callback is missing, or out of range */
    ACCEL_ERROR_CONTENT = -9,  /* memory differs from the loaded content */
    ACCEL_ERROR_VALUE = -10,   /* an input has a value that the program was not compiled for */
    ACCEL_ERROR_HUNG = -11,    /* the run was stopped, but the memory bus does not accept an offered transfer */
    ACCEL_ERROR_CAUSE = -12    /* the machine reports an error, but its cause register holds no cause */
};

/* One accelerator. Fill in the callbacks and settings, and zero the rest. Callbacks return 0 on success.
 *
 * Memory means the memory of the accelerator's AXI4 port, with the addresses of that port. When write_memory
 * returns, the accelerator must see the new values; read_memory must see the values that the accelerator wrote. If
 * the processor has a data cache in between, clean it after writing and invalidate it before reading. */
typedef struct accel_device {
    void *context; /* passed to the callbacks */
    int (*read_register)(void *context, uint32_t offset, uint32_t *word);
    int (*write_register)(void *context, uint32_t offset, uint32_t word);
    int (*read_memory)(void *context, uint64_t address, void *bytes, size_t count);
    int (*write_memory)(void *context, uint64_t address, const void *bytes, size_t count);
    int (*pause)(void *context); /* called between two reads of STATUS; may be NULL; any value but 0 stops the run */

    uint64_t base;       /* address of the package's memory, a multiple of 4096 */
    uint64_t max_cycles; /* the machine ends a longer run with ACCEL_CAUSE_LIMIT; 0: no limit */
    uint64_t max_polls;  /* reads of STATUS before ACCEL_ERROR_TIMEOUT; 0: no limit */
    uint32_t bus_timeout; /* cycles without progress of an outstanding burst after which the machine ends the
                             run with ACCEL_CAUSE_TIMEOUT; 0: no limit */

    uint64_t cycles;      /* out: cycles of the last run, or of all programs of the last accel_network_run */
    uint32_t fault_index; /* out: number of the faulting instruction, valid if a function returned a cause */
} accel_device;

/* A register and the value that it must hold. */
typedef struct accel_identity {
    uint32_t offset;
    uint32_t value;
} accel_identity;

/* Check that there is an accelerator with the register map of accel_registers.h and with these values. */
int accel_identify(accel_device *device, const accel_identity *identities, size_t count);

/* Start a program and return at once.
 *
 * window, window_bytes: memory that the program may access; the address is a multiple of 4096.
 * program: address of the first instruction. instructions: their number. */
int accel_start(accel_device *device, uint64_t window, uint64_t window_bytes, uint64_t program,
                uint32_t instructions);

/* Wait until the run has ended and all its results are in memory. A run that takes too long is stopped. */
int accel_wait(accel_device *device);

/* End the run in progress, which may have written a part of its outputs. If bursts are still outstanding after
 * `polls` reads of STATUS (at least one), the run is abandoned: later responses are dropped. AXI forbids to withdraw
 * an offered transfer; if the bus does not accept one, the result is ACCEL_ERROR_HUNG, and only a reset of the
 * accelerator together with its memory bus helps. */
int accel_stop(accel_device *device, uint64_t polls);

/* Make the machine raise its pin `irq` when a run ends, or not. accel_wait clears the pin. */
int accel_enable_interrupt(accel_device *device, int on);

/* Read a register of two words, for example a counter; low_offset is from accel_registers.h. */
int accel_read_wide(accel_device *device, uint32_t low_offset, uint64_t *value);

/* The meaning of a function's result, in words. */
const char *accel_message(int status);

#ifdef __cplusplus
}
#endif

#endif
