// The device, its facts, and its context, of which each thread has its own notion; and how the calls are found.
#define _GNU_SOURCE
#include "driver.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64 };

enum {  // CU_DEVICE_ATTRIBUTE_...
    MAX_THREADS_PER_BLOCK = 1, MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z, MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z,
    MAX_SHARED_MEMORY_PER_BLOCK, WARP_SIZE = 10, MAX_REGISTERS_PER_BLOCK = 12, CLOCK_RATE, MULTIPROCESSOR_COUNT = 16,
    MEMORY_CLOCK_RATE = 36, GLOBAL_MEMORY_BUS_WIDTH, L2_CACHE_SIZE, MAX_THREADS_PER_MULTIPROCESSOR, UNIFIED_ADDRESSING = 41,
    COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    MAX_REGISTERS_PER_MULTIPROCESSOR, COOPERATIVE_LAUNCH = 95, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
};

static int context, device_of_context;
static __thread void *current[DEPTH];
static __thread int depth;

Result cuInit(u32 flags) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return visible && (!*visible || !strcmp(visible, "-1")) ? NO_DEVICE : OK;
}
Result cuIpcOpenMemHandle(void **memory, void *handle, u32 flags) { return INVALID; }
Result cuDriverGetVersion(int *version) { return *version = 13000, OK; }
Result cuDeviceGetCount(int *devices) { return *devices = 1, OK; }
Result cuDeviceGet(int *device, int number) { return *device = device_of_context, number ? INVALID : OK; }
Result cuDeviceGetName(char *name, int size, int device) { return snprintf(name, size, "Machine of the tests"), OK; }
Result cuDeviceGetUuid(char *uuid, int device) { return memset(uuid, 7, 16), OK; }
Result cuDeviceTotalMem(size_t *size, int device) { return *size = 1ull << 34, OK; }
Result cuDeviceGetPCIBusId(char *text, int size, int device) { return snprintf(text, size, "0000:00:00.0"), OK; }
Result cuDeviceCanAccessPeer(int *can, int a, int b) { return *can = 0, OK; }
u32 most_shared(void) {  // CUDA programming guide, technical specifications
    const char *capability = getenv("MACHINE_CAPABILITY");
    if (!capability || !strcmp(capability, "9.0") || !strcmp(capability, "10.0")) return 227 * 1024;
    return (!strcmp(capability, "7.5") ? 64 : !strcmp(capability, "8.0") ? 163 : 99) * 1024;
}
Result cuDeviceGetAttribute(int *value, int which, int device) {
    const char *capability = getenv("MACHINE_CAPABILITY");
    switch (which) {
    case COMPUTE_CAPABILITY_MAJOR: *value = capability ? atoi(capability) : 9; break;
    case COMPUTE_CAPABILITY_MINOR: *value = capability ? atoi(strchr(capability, '.') + 1) : 0; break;
    case MULTIPROCESSOR_COUNT: *value = MULTIPROCESSORS; break;
    case WARP_SIZE: *value = 32; break;
    case MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 * 1024; break;
    case MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = (int)most_shared(); break;
    case MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 228 * 1024; break;
    case MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case MAX_REGISTERS_PER_MULTIPROCESSOR: case MAX_REGISTERS_PER_BLOCK: *value = 65536; break;
    case COOPERATIVE_LAUNCH: case UNIFIED_ADDRESSING: *value = 1; break;
    case CLOCK_RATE: *value = 1980000; break;  // kHz
    case MEMORY_CLOCK_RATE: *value = 2619000; break;
    case GLOBAL_MEMORY_BUS_WIDTH: *value = 5120; break;
    case L2_CACHE_SIZE: *value = 50 << 20; break;
    case MAX_GRID_DIM_X: *value = 2147483647; break;
    case MAX_GRID_DIM_Y: case MAX_GRID_DIM_Z: *value = 65535; break;
    case MAX_THREADS_PER_BLOCK: case MAX_BLOCK_DIM_X: case MAX_BLOCK_DIM_Y: *value = 1024; break;
    case MAX_BLOCK_DIM_Z: *value = 64; break;
    default: *value = 0;
    }
    return OK;
}
Result cuDevicePrimaryCtxRetain(void **made, int device) { return *made = &context, OK; }
Result cuDevicePrimaryCtxRelease(int device) { return OK; }
Result cuDevicePrimaryCtxReset(int device) { return OK; }
Result cuCtxGetCurrent(void **now) { return *now = depth ? current[depth - 1] : 0, OK; }
Result cuCtxSetCurrent(void *now) { return current[depth ? depth - 1 : depth++] = now, OK; }
Result cuCtxPushCurrent(void *now) {
    if (depth == DEPTH) return fault(INVALID, "over %d contexts lie one upon the other", DEPTH);
    return current[depth++] = now, OK;
}
Result cuCtxPopCurrent(void **last) { return depth ? (*last = current[--depth], OK) : NO_CONTEXT; }
Result cuStreamGetCtx(void *stream, void **its) { return *its = &context, OK; }
Result cuCtxGetDevice(int *device) { return *device = device_of_context, depth ? OK : NO_CONTEXT; }
Result cuProfilerStart(void) { return OK; }
Result cuProfilerStop(void) { return OK; }
Result cuGetErrorName(Result error, const char **name) { return *name = error == FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR", OK; }
Result cuGetErrorString(Result error, const char **text) { return *text = "an error of the machine of the tests", OK; }

Result cuGetProcAddress(const char *name, void **function, int version, u64 flags, int *status) {
    static void *self;
    Dl_info mine;
    if (!self && dladdr((void *)cuGetProcAddress, &mine)) self = dlopen(mine.dli_fname, RTLD_NOW);
    *function = dlsym(self, strcmp(name, "cuGraphInstantiateWithFlags") ? name : "cuGraphInstantiate");
    if (status) *status = *function ? 0 : 1;
    return *function ? OK : NOT_FOUND;
}
Result cuGetProcAddress_v2(const char *n, void **f, int v, u64 g, int *s) { return cuGetProcAddress(n, f, v, g, s); }
