// A CUDA driver that pretends: it computes nothing, writes down each call, and refuses what a driver would refuse.
// PRETEND_LOG names the file. A line is the name of a call and what matters about it; FAULT begins a line that tells of
// a mistake of the caller. It has the functions that numba-cuda and stage 4 call while dense networks take steps.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
typedef unsigned int u32;
typedef unsigned long long u64;
enum { OK = 0, INVALID = 1, NO_CONTEXT = 201, HANDLE = 400, NOT_FOUND = 500, CAPTURE = 900 };

static void say(const char *format, ...) {
    static FILE *log;
    if (!log) {
        const char *path = getenv("PRETEND_LOG");
        log = fopen(path ? path : "/dev/null", "a");
        setvbuf(log, 0, _IOLBF, 0);
    }
    va_list values;
    va_start(values, format);
    vfprintf(log, format, values);
    va_end(values);
    fputc('\n', log);
}

void pretend_mark(const char *text) { say("# %s", text); }

// Memory: device memory is the host's. What was freed stays known, so that its use is a fault.
enum { PAGEABLE, PINNED, DEVICE };
static const char *const NAMES[] = {"pageable", "pinned", "device"};
static struct { char *at; u64 size; int kind, freed; } blocks[65536];
static int count;

static int holds(const void *p) {
    for (int i = count - 1; i >= 0; i--)
        if ((char *)p >= blocks[i].at && (char *)p < blocks[i].at + blocks[i].size) return i;
    return -1;
}

static int kind_of(const void *p, u64 size) {
    int i = holds(p);
    if (i < 0) return PAGEABLE;
    if (blocks[i].freed) say("FAULT memory that was freed is used");
    if ((char *)p + size > blocks[i].at + blocks[i].size) say("FAULT a copy reaches past its memory");
    return blocks[i].kind;
}

static Result make(void **p, u64 size, int kind, const char *name) {
    say("%s %llu", name, size);
    if (count == 65536 || !size) return INVALID;
    *p = calloc(1, size);
    blocks[count].at = *p, blocks[count].size = size, blocks[count].kind = kind, count++;
    return OK;
}

static int capturing;

static Result release(void *p, int kind, const char *name) {
    int i = holds(p);
    say("%s", name);
    if (capturing) say("FAULT %s during a capture", name);
    if (i < 0 || blocks[i].freed || blocks[i].at != p || blocks[i].kind != kind) {
        say("FAULT %s of what cannot be freed", name);
        return INVALID;
    }
    blocks[i].freed = 1;  // the memory is never given out again
    return OK;
}

Result cuMemAlloc(void **p, u64 size) { return make(p, size, DEVICE, "cuMemAlloc"); }
Result cuMemHostAlloc(void **p, u64 size, u32 flags) { return make(p, size, PINNED, "cuMemHostAlloc"); }
Result cuMemFree(void *p) { return release(p, DEVICE, "cuMemFree"); }
Result cuMemFreeHost(void *p) { return release(p, PINNED, "cuMemFreeHost"); }
Result cuMemGetInfo(u64 *left, u64 *all) { return *left = *all = 1ull << 34, OK; }

// Streams and graphs: a graph is the copies that it holds, for their memory has to live as long as it does.
typedef struct { void *to, *from; u64 size; } Copy;
typedef struct { int nodes, copies, gone; Copy copy[64]; } Graph;
typedef struct { int number, apart, gone; Graph *graph; } Stream;
static Stream legacy;

static Stream *stream_of(void *handle) {
    Stream *stream = (u64)handle < 3 ? &legacy : handle;
    if (stream->gone) say("FAULT a stream that was destroyed is used");
    return stream;
}

Result cuStreamCreate(void **handle, u32 flags) {
    static int made;
    Stream *stream = calloc(1, sizeof *stream);
    stream->number = ++made, stream->apart = flags & 1, *handle = stream;
    say("cuStreamCreate");
    return OK;
}

Result cuStreamDestroy(void *handle) {
    say("cuStreamDestroy");
    return stream_of(handle)->gone = 1, OK;
}

Result cuStreamSynchronize(void *handle) {
    say("cuStreamSynchronize");
    if (!stream_of(handle)->graph) return OK;
    say("FAULT a wait for a stream that is captured");
    return CAPTURE;
}

Result cuCtxSynchronize(void) {
    say("cuCtxSynchronize");
    if (!capturing) return OK;
    say("FAULT a wait for the device during a capture");
    return CAPTURE;
}

Result cuStreamBeginCapture(void *handle, int mode) {
    Stream *stream = stream_of(handle);
    say("cuStreamBeginCapture");
    if (!stream->apart) say("FAULT work on the default stream would end the capture of this one");
    stream->graph = calloc(1, sizeof(Graph)), capturing++;
    return OK;
}

Result cuStreamEndCapture(void *handle, void **graph) {
    Stream *stream = stream_of(handle);
    say("cuStreamEndCapture");
    if (!stream->graph) return INVALID;
    *graph = stream->graph, stream->graph = 0, capturing--;
    return OK;
}

Result cuGraphInstantiate(void **made, Graph *graph, u64 flags) {
    Graph *copy = malloc(sizeof *copy);
    say("cuGraphInstantiate");
    *copy = *graph, *made = copy;
    return OK;
}

Result cuGraphDestroy(Graph *graph) { return say("cuGraphDestroy"), graph->gone++ ? INVALID : OK; }

Result cuGraphExecDestroy(Graph *graph) {
    say("cuGraphExecDestroy");
    if (graph->gone++) say("FAULT a graph is destroyed twice");
    return OK;
}

Result cuGraphLaunch(Graph *graph, void *handle) {
    say("cuGraphLaunch %d nodes, %d of them copies", graph->nodes, graph->copies);
    if (graph->gone) say("FAULT a graph that was destroyed is launched");
    for (int i = 0; i < graph->copies; i++) {
        kind_of(graph->copy[i].from, graph->copy[i].size), kind_of(graph->copy[i].to, graph->copy[i].size);
    }
    return stream_of(handle), OK;
}

static Result copy(const char *name, void *to, void *from, u64 size, void *handle, int waits) {
    Stream *stream = stream_of(handle);
    int source = kind_of(from, size), target = kind_of(to, size);
    say("%s %s to %s%s", name, NAMES[source], NAMES[target], stream->graph ? ", captured" : "");
    if (!stream->graph) return memmove(to, from, size), OK;
    if (waits) say("FAULT a copy that waits is captured");
    if (source == PAGEABLE || target == PAGEABLE) say("FAULT a copy of memory that may be moved is captured");
    if (stream->graph->copies < 64) stream->graph->copy[stream->graph->copies++] = (Copy){to, from, size};
    stream->graph->nodes++;
    return OK;
}

Result cuMemcpyHtoD(void *to, void *from, u64 size) { return copy("cuMemcpyHtoD", to, from, size, 0, 1); }
Result cuMemcpyDtoH(void *to, void *from, u64 size) { return copy("cuMemcpyDtoH", to, from, size, 0, 1); }
Result cuMemcpyDtoD(void *to, void *from, u64 size) { return copy("cuMemcpyDtoD", to, from, size, 0, 0); }
Result cuMemcpyHtoDAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyHtoDAsync", to, from, n, s, 0); }
Result cuMemcpyDtoHAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyDtoHAsync", to, from, n, s, 0); }
Result cuMemcpyDtoDAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyDtoDAsync", to, from, n, s, 0); }

// Kernels: every image has every kernel.
typedef struct { u32 grid[3], block[3], shared; void *stream, *attributes; u32 count; } Launch;

Result cuLibraryLoadData(void **library, void *a, void *b, void *c, u32 d, void *e, void *f, u32 g) {
    say("cuLibraryLoadData");
    if (capturing) say("FAULT a module is loaded during a capture");
    return *library = malloc(1), OK;
}
Result cuLibraryUnload(void *library) { return OK; }
Result cuLibraryGetKernel(void **kernel, void *library, const char *name) { return *kernel = strdup(name), OK; }
Result cuKernelGetFunction(void **function, void *kernel) { return *function = kernel, OK; }
Result cuKernelGetAttribute(int *value, int which, void *kernel, int device) { return *value = 0, OK; }
Result cuFuncGetAttribute(int *value, int which, void *function) { return *value = 0, OK; }

Result cuLaunchKernelEx(Launch *launch, void *kernel, void **arguments, void **more) {
    Stream *stream = stream_of(launch->stream);
    say("cuLaunchKernelEx%s %s", stream->graph ? ", captured:" : "", (char *)kernel);
    if (stream->graph) stream->graph->nodes++;
    return OK;
}

// The device, and its context, of which each thread has its own notion.
static int context, device_of_context;
static __thread void *current[16];
static __thread int depth;

Result cuInit(u32 flags) { return OK; }
Result cuDriverGetVersion(int *version) { return *version = 13000, OK; }
Result cuDeviceGetCount(int *devices) { return *devices = 1, OK; }
Result cuDeviceGet(int *device, int number) { return *device = device_of_context, number ? INVALID : OK; }
Result cuDeviceGetName(char *name, int size, int device) { return snprintf(name, size, "Pretend"), OK; }
Result cuDeviceGetUuid(char *uuid, int device) { return memset(uuid, 7, 16), OK; }
Result cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 16 ? 132 : which == 75 ? 9 : which == 76 ? 0 : which == 10 ? 32 : 1024;
    return OK;
}
Result cuDevicePrimaryCtxRetain(void **made, int device) { return *made = &context, OK; }
Result cuDevicePrimaryCtxRelease(int device) { return OK; }
Result cuCtxGetCurrent(void **now) { return *now = depth ? current[depth - 1] : 0, OK; }
Result cuCtxSetCurrent(void *now) { return current[depth ? depth - 1 : depth++] = now, OK; }
Result cuCtxPushCurrent(void *now) { return current[depth++] = now, OK; }
Result cuCtxPopCurrent(void **last) { return depth ? (*last = current[--depth], OK) : NO_CONTEXT; }
Result cuCtxGetDevice(int *device) { return *device = device_of_context, depth ? OK : NO_CONTEXT; }
Result cuGetErrorName(Result error, const char **name) { return *name = "CUDA_ERROR", OK; }
Result cuGetErrorString(Result error, const char **text) { return *text = "an error of the pretended driver", OK; }

Result cuGetProcAddress(const char *name, void **function, int version, u64 flags, int *status) {
    static void *self;
    Dl_info mine;
    if (!self && dladdr((void *)cuGetProcAddress, &mine)) self = dlopen(mine.dli_fname, RTLD_NOW);
    *function = dlsym(self, strcmp(name, "cuGraphInstantiateWithFlags") ? name : "cuGraphInstantiate");
    return *function ? OK : NOT_FOUND;
}
Result cuGetProcAddress_v2(const char *n, void **f, int v, u64 g, int *s) { return cuGetProcAddress(n, f, v, g, s); }
