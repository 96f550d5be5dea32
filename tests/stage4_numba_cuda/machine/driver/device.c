// The device, its facts, and its context, of which each thread has its own notion; and how the calls are found.
#define _GNU_SOURCE
#include "driver.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int context, device_of_context;
static __thread void *current[64];
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
Result cuDeviceGetAttribute(int *value, int which, int device) {
    const char *capability = getenv("MACHINE_CAPABILITY");
    switch (which) {
    case 75: *value = capability ? atoi(capability) : 9; break;
    case 76: *value = capability ? atoi(strchr(capability, '.') + 1) : 0; break;
    case 16: *value = MULTIPROCESSORS; break;
    case 10: *value = 32; break;                       // a warp
    case 8: *value = 48 * 1024; break;                 // shared memory of a block
    case 97: *value = 227 * 1024; break;               // the same, where a launch asks for more
    case 81: *value = 228 * 1024; break;               // of a multiprocessor
    case 39: *value = 2048; break;                     // threads of a multiprocessor
    case 82: case 12: *value = 65536; break;           // registers
    case 95: case 41: *value = 1; break;               // cooperative launches; unified addresses
    case 13: *value = 1980000; break;                  // kHz
    case 36: *value = 2619000; break;
    case 37: *value = 5120; break;
    case 38: *value = 50 << 20; break;
    case 5: *value = 2147483647; break;
    case 6: case 7: *value = 65535; break;
    case 2: case 3: *value = 1024; break;
    case 4: *value = 64; break;
    default: *value = which == 1 ? 1024 : 0;
    }
    return OK;
}
Result cuDevicePrimaryCtxRetain(void **made, int device) { return *made = &context, OK; }
Result cuDevicePrimaryCtxRelease(int device) { return OK; }
Result cuDevicePrimaryCtxReset(int device) { return OK; }
Result cuCtxGetCurrent(void **now) { return *now = depth ? current[depth - 1] : 0, OK; }
Result cuCtxSetCurrent(void *now) { return current[depth ? depth - 1 : depth++] = now, OK; }
Result cuCtxPushCurrent(void *now) { return current[depth++] = now, OK; }
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
