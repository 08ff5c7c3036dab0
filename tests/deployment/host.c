/* A package on a machine of its own: a run changes memory as one was recorded to do. For sanitizers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accel_registers.h"
#include "digits.h"

#define BASE 0x40000u

static unsigned char memory[DIGITS_MEMORY_BYTES];
static uint32_t words[1024];

static void record(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fread(memory, 1, sizeof memory, file) != sizeof memory) {
        perror(path);
        exit(2);
    }
    fclose(file);
}

static int read_register(void *context, uint32_t offset, uint32_t *word) {
    (void)context;
    *word = words[offset / 4];
    return 0;
}

static int write_register(void *context, uint32_t offset, uint32_t word) {
    words[offset / 4] = word;
    if (offset == ACCEL_CONTROL && word == ACCEL_CONTROL_START) {
        record(context);
        words[ACCEL_STATUS / 4] = ACCEL_STATUS_DONE;
    }
    return 0;
}

static int inside(uint64_t address, size_t count) {
    return address >= BASE && count <= sizeof memory && address - BASE <= sizeof memory - count;
}

static int read_memory(void *context, uint64_t address, void *bytes, size_t count) {
    (void)context;
    if (!inside(address, count))
        return 1;
    memcpy(bytes, memory + (address - BASE), count);
    return 0;
}

static int write_memory(void *context, uint64_t address, const void *bytes, size_t count) {
    (void)context;
    if (!inside(address, count))
        return 1;
    memcpy(memory + (address - BASE), bytes, count);
    return 0;
}

int main(int count, char **arguments) {
    accel_device device = {0};
    float *scores = malloc(digits_network.outputs[DIGITS_OUTPUT_SCORES].bytes);
    void *outputs[DIGITS_OUTPUTS], *workspace = malloc(DIGITS_WORKSPACE_BYTES);
    size_t at;
    int status;
    if (count != 2)
        return 2;
    for (at = 0; at < digits_network.identity_count; at++)
        words[digits_network.identities[at].offset / 4] = digits_network.identities[at].value;
    words[ACCEL_ID / 4] = ACCEL_ID_VALUE;
    words[ACCEL_VERSION / 4] = ACCEL_VERSION_VALUE;
    device.context = arguments[1];
    device.read_register = read_register;
    device.write_register = write_register;
    device.read_memory = read_memory;
    device.write_memory = write_memory;
    device.base = BASE;
    outputs[DIGITS_OUTPUT_SCORES] = scores;
    status = accel_network_load(&device, &digits_network, digits_files);
    if (!status)
        status = accel_network_check(&device, &digits_network);
    if (!status)
        status = accel_network_run(&device, &digits_network, digits_example_inputs, outputs, workspace);
    puts(accel_message(status));
    if (!status && memcmp(scores, digits_example_outputs[0], digits_network.outputs[0].bytes))
        puts("but the scores are others");
    free(scores);
    free(workspace);
    return status != 0;
}
