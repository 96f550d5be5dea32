// What a kernel's library (warps.h) and the driver know of one another: the kernels that it has, and one launch. And the
// lots that both draw.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

// What the driver knows: the memory that holds an address, and whether it may be used.
typedef int (*Find)(u64 address, u64 *begin, u64 *end);

typedef struct {
    u32 grid[3], block[3], dynamic;
    const u8 *parameters;
    Find find;
    u64 seed;  // of the order in which blocks, warps and threads take turns
    int cooperative;
    char *said;  // 400 characters for a mistake
} Launch;

typedef struct { u32 offset, size; } Parameter;

struct Thread;
struct Block;

typedef struct {
    const char *name;
    void (*go)(struct Thread *, struct Block *);
    void (*together)(struct Thread **, struct Block *, u32, u32);
    size_t registers;
    u32 shared, parameters, count;  // bytes of shared memory, and of all parameters, and their number
    const Parameter *parameter;
} Kernel;

typedef int (*Run)(int number, const Launch *launch);  // `launch` of warps.h

static inline u64 lot(u64 *state) {  // xorshift64*
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Dull >> 16;
}
