// A CUDA driver that needs no GPU: the functions that numba-cuda and stage 4 call. Kernels are run by warps.h.
//
// Images are PTX. Each is compiled for this processor (image.py) and kept in MACHINE_CACHE under the hash of its text.
// Work is done late, as a device may: a launch, a replayed graph or an asynchronous copy waits in a queue until the host
// asks for a result, so that memory which is changed or freed too early gives wrong numbers. New memory is full of NaN.
//
// Each call is a line in MACHINE_LOG: its name, and what matters about it. FAULT begins a line that tells of a mistake of
// the caller or of a kernel; it is printed, too, and is that call's error.
// MACHINE_PYTHON is the interpreter for image.py, MACHINE_ROOT the project, MACHINE_SEED a number that changes the order
// in which threads take turns, MACHINE_CAPABILITY the compute capability: 9.0 unless it is set.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int Result;
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
enum { OK = 0, INVALID = 1, MEMORY = 2, NO_DEVICE = 100, NO_CONTEXT = 201, PTX = 218, HANDLE = 400 };
enum { NOT_FOUND = 500, NOT_READY = 600, FAILED = 719, TOO_LARGE = 720, CAPTURE = 900 };
enum { MULTIPROCESSORS = 132 };
#define IMAGE "tests.stage4_numba_cuda.machine.image"

static void write_line(const char *begin, const char *format, va_list values) {
    static FILE *log;
    if (!log) {
        const char *path = getenv("MACHINE_LOG");
        log = fopen(path ? path : "/dev/null", "a");
        setvbuf(log, 0, _IOLBF, 0);
    }
    char text[1000];
    vsnprintf(text, sizeof text, format, values);
    fprintf(log, "%s%s\n", begin, text);
    if (*begin == 'F') fprintf(stderr, "%s%s\n", begin, text);
}

static void say(const char *format, ...) {
    va_list values;
    va_start(values, format), write_line("", format, values), va_end(values);
}

static Result fault(Result result, const char *format, ...) {
    va_list values;
    va_start(values, format), write_line("FAULT ", format, values), va_end(values);
    return result;
}

void machine_mark(const char *text) { say("# %s", text); }

// Memory: device memory is the host's, by address in order. What was freed stays known, and cannot be touched again.
enum { PAGEABLE, PINNED, DEVICE, GONE };
static const char *const NAMES[] = {"pageable", "pinned", "device", "freed"};
typedef struct { u8 *at; u64 size; int kind; } Piece;
static Piece *pieces;
static u64 count, room;

static u64 up_to(const void *p) {  // how many pieces begin at p or before
    u64 low = 0, high = count;
    while (low < high) {
        u64 middle = (low + high) / 2;
        if (pieces[middle].at <= (u8 *)p) low = middle + 1;
        else high = middle;
    }
    return low;
}

static Piece *holding(const void *p) {
    u64 i = up_to(p);
    return i && (u8 *)p < pieces[i - 1].at + pieces[i - 1].size ? &pieces[i - 1] : 0;
}

static int find(u64 address, u64 *begin, u64 *end) {
    Piece *piece = holding((void *)address);
    if (!piece || piece->kind == GONE) return 0;
    *begin = (u64)piece->at, *end = *begin + piece->size;
    return 1;
}

static void *mapped(void *at, u64 size, int use) {  // and a page behind it
    return mmap(at, (size + 4095) / 4096 * 4096 + 4096, use, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

static Result make(void **p, u64 size, int kind, const char *name) {
    say("%s %llu", name, (long long)size);
    if (!size) return INVALID;
    u8 *at = mapped(0, size, PROT_READ | PROT_WRITE);
    if (at == MAP_FAILED) return MEMORY;
    if (size <= 1 << 28) memset(at, 0xFF, size);
    if (count == room) pieces = realloc(pieces, (room = 2 * room + 64) * sizeof *pieces);
    u64 i = up_to(at);
    memmove(pieces + i + 1, pieces + i, (count - i) * sizeof *pieces);
    pieces[i] = (Piece){at, size, kind}, count++;
    *p = at;
    return OK;
}

static int capturing;
static Result finish_work(void);

static Result release(void *p, int kind, const char *name) {
    say("%s", name);
    if (capturing) return fault(CAPTURE, "%s during a capture", name);
    finish_work();
    u64 i = up_to(p);
    if (!i || pieces[i - 1].at != p || pieces[i - 1].kind != kind) return fault(INVALID, "%s of what cannot be freed", name);
    pieces[i - 1].kind = GONE, mapped(p, pieces[i - 1].size, PROT_NONE);
    return OK;
}

// Work: copies, fills and launches, in a queue or in a graph.
typedef struct {
    const char *name;
    u32 shared, size, parameters;
    const struct { u32 offset, size; } *parameter;
    int (*launch)(int, const void *);
    int number;
} Kernel;

typedef struct {
    u32 grid[3], block[3], dynamic;
    const u8 *parameters;
    int (*find)(u64, u64 *, u64 *);
    u64 seed;
    int cooperative;
    char *said;
} Launch;  // as in warps.h

typedef struct { enum { COPY, FILL, LAUNCH, EVENT } kind; void *to, *from; u64 size; int value; Kernel *kernel; Launch launch; } Work;
typedef struct { Work *work; u64 count, room; int gone; } List;
typedef struct { int recorded, reached; struct timespec time; } Event;
typedef struct { int apart, capturing; List captured; } Stream;

static List queue;
static Stream legacy;
static Result broken;  // what every call answers after a kernel failed, as with a device

static void add(List *list, Work work) {
    if (list->count == list->room) list->work = realloc(list->work, (list->room = 2 * list->room + 16) * sizeof work);
    list->work[list->count++] = work;
}

static int kind_of(void *p, u64 size) {
    Piece *piece = holding(p);
    if (!piece) return PAGEABLE;
    if (piece->kind == GONE) fault(INVALID, "memory that was freed is used");
    if ((u8 *)p + size > piece->at + piece->size) fault(INVALID, "a copy reaches past its memory");
    return piece->kind;
}

static Result done(Work *work) {
    static u64 launches;
    char said[400] = "";
    switch (work->kind) {
    case COPY:
        memmove(work->to, work->from, work->size);
        return OK;
    case FILL:
        memset(work->to, work->value, work->size);
        return OK;
    case EVENT:
        ((Event *)work->to)->reached = 1, clock_gettime(CLOCK_MONOTONIC, &((Event *)work->to)->time);
        return OK;
    case LAUNCH:
        work->launch.find = find, work->launch.said = said;
        const char *seed = getenv("MACHINE_SEED");
        work->launch.seed = (seed ? strtoull(seed, 0, 10) : 0) * 1000003 + ++launches;
        if (work->kernel->launch(work->kernel->number, &work->launch))
            return fault(broken = FAILED, "%s, grid %u x %u x %u of %u x %u x %u threads: %s", work->kernel->name,
                         work->launch.grid[0], work->launch.grid[1], work->launch.grid[2], work->launch.block[0],
                         work->launch.block[1], work->launch.block[2], said);
    }
    return OK;
}

static u64 begun;  // so much of the queue has been done

static Result do_one(void) {  // after a mistake nothing more is done
    Work *work = &queue.work[begun++];
    Result result = broken ? broken : done(work);
    if (work->kind == LAUNCH) free((void *)work->launch.parameters);
    if (work->kind == COPY && work->value) free(work->from);
    if (begun == queue.count) begun = queue.count = 0;
    return result;
}

static Result finish_work(void) {
    while (queue.count) do_one();
    return broken;
}

static Stream *stream_of(void *handle) { return (u64)handle < 3 ? &legacy : handle; }

Result cuMemAlloc(void **p, u64 size) { return make(p, size, DEVICE, "cuMemAlloc"); }
Result cuMemHostAlloc(void **p, u64 size, u32 flags) { return make(p, size, PINNED, "cuMemHostAlloc"); }
Result cuMemFree(void *p) { return release(p, DEVICE, "cuMemFree"); }
Result cuMemFreeHost(void *p) { return release(p, PINNED, "cuMemFreeHost"); }
Result cuMemGetInfo(u64 *left, u64 *all) { return *left = *all = 1ull << 34, OK; }
Result cuMemHostGetDevicePointer(void **device, void *host, u32 flags) { return *device = host, OK; }
Result cuMemGetAddressRange(void **at, u64 *size, void *p) {
    Piece *piece = holding(p);
    return piece ? (*at = piece->at, *size = piece->size, OK) : NOT_FOUND;
}
Result cuPointerGetAttribute(void *value, int which, void *p) {
    Piece *piece = holding(p);
    if (!piece) return INVALID;
    if (which == 2) *(int *)value = piece->kind == DEVICE ? 2 : 1;
    else *(void **)value = p;
    return OK;
}

static Result copy(const char *name, void *to, void *from, u64 size, void *handle, int waits) {
    Stream *stream = stream_of(handle);
    int source = kind_of(from, size), target = kind_of(to, size);
    say("%s %s to %s%s", name, NAMES[source], NAMES[target], stream->capturing ? ", captured" : "");
    if (source == GONE || target == GONE) return INVALID;
    Work work = {COPY, to, from, size};
    if (stream->capturing) {
        if (waits) return fault(CAPTURE, "a copy that waits is captured");
        if (source == PAGEABLE || target == PAGEABLE) return fault(CAPTURE, "a copy of memory that may be moved is captured");
        return add(&stream->captured, work), OK;
    }
    if (source == PAGEABLE && !waits) work.from = memcpy(malloc(size), from, size), work.value = 1;  // read at once
    add(&queue, work);
    return waits || target == PAGEABLE ? finish_work() : broken;
}

Result cuMemcpyHtoD(void *to, void *from, u64 size) { return copy("cuMemcpyHtoD", to, from, size, 0, 1); }
Result cuMemcpyDtoH(void *to, void *from, u64 size) { return copy("cuMemcpyDtoH", to, from, size, 0, 1); }
Result cuMemcpyDtoD(void *to, void *from, u64 size) { return copy("cuMemcpyDtoD", to, from, size, 0, 0); }
Result cuMemcpyHtoDAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyHtoDAsync", to, from, n, s, 0); }
Result cuMemcpyDtoHAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyDtoHAsync", to, from, n, s, 0); }
Result cuMemcpyDtoDAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyDtoDAsync", to, from, n, s, 0); }

Result cuMemsetD8Async(void *to, u8 value, u64 size, void *handle) {
    Stream *stream = stream_of(handle);
    kind_of(to, size);
    add(stream->capturing ? &stream->captured : &queue, (Work){FILL, to, 0, size, value});
    return broken;
}
Result cuMemsetD8(void *to, u8 value, u64 size) { return cuMemsetD8Async(to, value, size, 0); }

Result cuStreamCreate(void **handle, u32 flags) {
    Stream *stream = calloc(1, sizeof *stream);
    say("cuStreamCreate");
    stream->apart = flags & 1, *handle = stream;
    return OK;
}
Result cuStreamDestroy(void *handle) { return say("cuStreamDestroy"), finish_work(), free(handle), OK; }
Result cuStreamSynchronize(void *handle) {
    say("cuStreamSynchronize");
    return stream_of(handle)->capturing ? fault(CAPTURE, "a wait for a stream that is captured") : finish_work();
}
Result cuStreamWaitEvent(void *handle, void *event, u32 flags) { return OK; }
Result cuCtxSynchronize(void) {
    say("cuCtxSynchronize");
    return capturing ? fault(CAPTURE, "a wait for the device during a capture") : finish_work();
}

Result cuEventCreate(void **event, u32 flags) { return *event = calloc(1, sizeof(Event)), OK; }
Result cuEventDestroy(Event *event) { return finish_work(), free(event), OK; }
Result cuEventRecord(Event *event, void *handle) {
    event->recorded = 1, event->reached = 0;
    return add(&queue, (Work){EVENT, event}), broken;
}
Result cuEventQuery(Event *event) {  // each time the device has done a little more
    if (queue.count && event->recorded && !event->reached) do_one();
    return broken ? broken : event->recorded && !event->reached ? NOT_READY : OK;
}
Result cuEventSynchronize(Event *event) { return finish_work(); }
Result cuEventElapsedTime(float *milliseconds, Event *from, Event *to) {
    if (!from->recorded || !to->recorded) return HANDLE;
    if (!from->reached || !to->reached) return NOT_READY;
    *milliseconds = (to->time.tv_sec - from->time.tv_sec) * 1e3 + (to->time.tv_nsec - from->time.tv_nsec) / 1e6;
    return OK;
}

Result cuStreamBeginCapture(void *handle, int mode) {
    Stream *stream = stream_of(handle);
    say("cuStreamBeginCapture");
    if (!stream->apart) fault(CAPTURE, "work on the default stream would end the capture of this one");
    memset(&stream->captured, 0, sizeof stream->captured);
    stream->capturing = 1, capturing++;
    return OK;
}

Result cuStreamEndCapture(void *handle, void **graph) {
    Stream *stream = stream_of(handle);
    say("cuStreamEndCapture");
    if (!stream->capturing) return INVALID;
    stream->capturing = 0, capturing--;
    List *list = *graph = malloc(sizeof *list);
    return *list = stream->captured, OK;
}

Result cuGraphInstantiate(void **made, List *graph, u64 flags) {
    say("cuGraphInstantiate");
    List *list = *made = malloc(sizeof *list);
    return *list = *graph, OK;
}

static Result forget(const char *name, List *graph) {  // its work is shared by a graph and what was made of it, and stays
    say("%s", name);
    if (graph->gone) return fault(INVALID, "a graph is destroyed twice");
    return finish_work(), graph->gone = 1, OK;
}
Result cuGraphDestroy(List *graph) { return forget("cuGraphDestroy", graph); }
Result cuGraphExecDestroy(List *graph) { return forget("cuGraphExecDestroy", graph); }

static u8 *copied(const Kernel *kernel, const u8 *from) { return memcpy(malloc(kernel->size + 1), from, kernel->size); }

Result cuGraphLaunch(List *graph, void *handle) {
    u64 copies = 0;
    for (u64 i = 0; i < graph->count; i++) copies += graph->work[i].kind == COPY;
    say("cuGraphLaunch %llu nodes, %llu of them copies", (long long)graph->count, (long long)copies);
    if (graph->gone) return fault(INVALID, "a graph that was destroyed is launched");
    for (u64 i = 0; i < graph->count; i++) {
        Work work = graph->work[i];
        if (work.kind == LAUNCH) work.launch.parameters = copied(work.kernel, work.launch.parameters);
        if (work.kind == COPY && (kind_of(work.to, work.size) == GONE || kind_of(work.from, work.size) == GONE)) return INVALID;
        add(&queue, work);
    }
    return broken;
}

// Kernels.
typedef struct { const char *name; void *go, *together; size_t registers; u32 shared, size, parameters; const void *parameter; } Row;
typedef struct { Row *rows; int (*launch)(int, const void *); } Image;

static u64 hash(const char *text) {
    u64 h = 14695981039346656037ull;
    while (*text) h = (h ^ (u8)*text++) * 1099511628211ull;
    return h;
}

Result cuLibraryLoadData(void **library, const char *text, void *b, void *c, u32 d, void *e, void *f, u32 g) {
    char path[500], command[1200];
    say("cuLibraryLoadData");
    if (capturing) fault(CAPTURE, "a module is loaded during a capture");
    if (!strstr(text, ".version")) return fault(PTX, "an image that is no PTX");
    snprintf(path, sizeof path, "%s/%016llx.so", getenv("MACHINE_CACHE"), (unsigned long long)hash(text));
    if (access(path, R_OK)) {
        snprintf(command, sizeof command, "cd \"$MACHINE_ROOT\" && env -u LD_LIBRARY_PATH \"$MACHINE_PYTHON\" -S -m %s %s", IMAGE, path);
        FILE *translator = popen(command, "w");
        if (translator) fputs(text, translator);
        if (!translator || pclose(translator)) return fault(PTX, "%s cannot be made", path);
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return fault(PTX, "%s", dlerror());
    Image *image = malloc(sizeof *image);
    image->rows = dlsym(handle, "kernels"), image->launch = dlsym(handle, "launch"), *library = image;
    return OK;
}
Result cuLibraryUnload(void *library) { return OK; }
Result cuLibraryGetKernel(void **kernel, Image *image, const char *name) {
    for (int i = 0; image->rows[i].name; i++)
        if (!strcmp(image->rows[i].name, name)) {
            Row *row = &image->rows[i];
            Kernel *made = malloc(sizeof *made);
            *made = (Kernel){row->name, row->shared, row->size, row->parameters, row->parameter, image->launch, i};
            return *kernel = made, OK;
        }
    return NOT_FOUND;
}
Result cuKernelGetFunction(void **function, void *kernel) { return *function = kernel, OK; }
static Result attribute(int *value, int which, Kernel *kernel) {
    *value = which == 0 ? 1024 : which == 1 ? (int)kernel->shared : which == 4 ? 32 : 0;
    return OK;
}
Result cuKernelGetAttribute(int *value, int which, void *kernel, int device) { return attribute(value, which, kernel); }
Result cuFuncGetAttribute(int *value, int which, void *function) { return attribute(value, which, function); }
Result cuKernelSetAttribute(int which, int value, void *kernel, int device) { return OK; }
Result cuFuncSetAttribute(void *function, int which, int value) { return OK; }
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t dynamic) { return *blocks = 1, OK; }
Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *f, int t, size_t d, u32 g) { return *blocks = 1, OK; }

typedef struct { int id; char pad[4]; int value[16]; } Attribute;
typedef struct { u32 grid[3], block[3], shared; void *stream; Attribute *attributes; u32 count; } Config;

Result cuLaunchKernelEx(Config *config, Kernel *kernel, void **arguments, void **more) {
    Stream *stream = stream_of(config->stream);
    Work work = {LAUNCH, .kernel = kernel};
    say("cuLaunchKernelEx%s %s", stream->capturing ? ", captured:" : "", kernel->name);
    memcpy(work.launch.grid, config->grid, 12), memcpy(work.launch.block, config->block, 12);
    work.launch.dynamic = config->shared;
    for (u32 i = 0; i < config->count; i++)
        if (config->attributes[i].id == 2) work.launch.cooperative = config->attributes[i].value[0];
    u64 blocks = 1ull * config->grid[0] * config->grid[1] * config->grid[2];
    u64 threads = 1ull * config->block[0] * config->block[1] * config->block[2];
    if (!blocks || !threads || threads > 1024 || config->grid[1] > 65535 || config->grid[2] > 65535 || config->block[2] > 64)
        return fault(INVALID, "%s: a grid of %llu blocks of %llu threads", kernel->name, (long long)blocks, (long long)threads);
    if (kernel->shared + config->shared > (config->shared ? 227 : 48) * 1024) return fault(INVALID, "%s: too much shared memory", kernel->name);
    if (work.launch.cooperative && blocks > MULTIPROCESSORS) return TOO_LARGE;
    u8 *parameters = calloc(1, kernel->size + 1);
    for (u32 i = 0; i < kernel->parameters; i++)
        memcpy(parameters + kernel->parameter[i].offset, arguments[i], kernel->parameter[i].size);
    work.launch.parameters = parameters;
    add(stream->capturing ? &stream->captured : &queue, work);
    return broken;
}

// The device, and its context, of which each thread has its own notion.
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
