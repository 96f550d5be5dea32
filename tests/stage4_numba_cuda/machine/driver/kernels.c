// Kernels: images are PTX. Each is compiled for this processor (image.py) and kept in MACHINE_CACHE under the hash of its
// text.
#include "driver.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IMAGE "tests.stage4_numba_cuda.machine.image"

typedef struct { const Kernel *kernels; Run run; } Image;

static u64 hash(const char *text) {
    u64 h = 14695981039346656037ull;
    while (*text) h = (h ^ (u8)*text++) * 1099511628211ull;
    return h;
}

Result cuLibraryLoadData(void **library, const char *text, void *b, void *c, u32 d, void *e, void *f, u32 g) {
    LOCKED;
    char path[500], command[1200];
    say("cuLibraryLoadData");
    if (capturing_here) return fault(CAPTURE, "a module is loaded during a capture");
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
    image->kernels = dlsym(handle, "kernels"), image->run = dlsym(handle, "launch"), *library = image;
    return OK;
}
Result cuLibraryUnload(void *library) { return OK; }
Result cuLibraryGetKernel(Function **function, Image *image, const char *name) {
    for (int i = 0; image->kernels[i].name; i++)
        if (!strcmp(image->kernels[i].name, name)) {
            *function = malloc(sizeof **function);
            return **function = (Function){&image->kernels[i], i, image->run, 48 * 1024}, OK;
        }
    return NOT_FOUND;
}
Result cuKernelGetFunction(void **function, void *kernel) { return *function = kernel, OK; }
static Result attribute(int *value, int which, Function *function) {
    enum { MAX_THREADS_PER_BLOCK, SHARED_SIZE_BYTES, NUM_REGS = 4 };  // CU_FUNC_ATTRIBUTE_...
    *value = which == MAX_THREADS_PER_BLOCK ? 1024 : which == SHARED_SIZE_BYTES ? (int)function->kernel->shared : which == NUM_REGS ? 32 : 0;
    return OK;
}
Result cuKernelGetAttribute(int *value, int which, void *kernel, int device) { return attribute(value, which, kernel); }
Result cuFuncGetAttribute(int *value, int which, void *function) { return attribute(value, which, function); }
static Result set_attribute(int which, int value, Function *function) {
    enum { MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };  // CU_FUNC_ATTRIBUTE_...
    if (which != MAX_DYNAMIC_SHARED_SIZE_BYTES) return OK;
    if (value < 0 || function->kernel->shared + value > most_shared())
        return fault(INVALID, "%s: no device of this kind has %d bytes of shared memory for it", function->kernel->name, value);
    return function->most_dynamic = value, OK;
}
Result cuKernelSetAttribute(int which, int value, void *kernel, int device) { return set_attribute(which, value, kernel); }
Result cuFuncSetAttribute(void *function, int which, int value) { return set_attribute(which, value, function); }
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t dynamic) { return *blocks = 1, OK; }
Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *f, int t, size_t d, u32 g) { return *blocks = 1, OK; }

enum { COOPERATIVE = 2 };  // CU_LAUNCH_ATTRIBUTE_...
typedef struct { int id; char pad[4]; int value[16]; } Attribute;
typedef struct { u32 grid[3], block[3], shared; void *stream; Attribute *attributes; u32 count; } Config;

Result cuLaunchKernelEx(Config *config, Function *function, void **arguments, void **more) {
    LOCKED;
    Stream *stream = stream_of(config->stream);
    const Kernel *kernel = function->kernel;
    Work work = {LAUNCH, .function = function};
    say("cuLaunchKernelEx%s %s", stream->capturing ? ", captured:" : "", kernel->name);
    memcpy(work.launch.grid, config->grid, 12), memcpy(work.launch.block, config->block, 12);
    work.launch.dynamic = config->shared;
    for (u32 i = 0; i < config->count; i++)
        if (config->attributes[i].id == COOPERATIVE) work.launch.cooperative = config->attributes[i].value[0];
    u64 blocks = 1ull * config->grid[0] * config->grid[1] * config->grid[2];
    u64 threads = 1ull * config->block[0] * config->block[1] * config->block[2];
    if (!blocks || !threads || threads > 1024 || config->grid[1] > 65535 || config->grid[2] > 65535 || config->block[2] > 64)
        return fault(INVALID, "%s: a grid of %llu blocks of %llu threads", kernel->name, (long long)blocks, (long long)threads);
    // Declared memory ends at 48 KB. With what the launch gives it may be more, if the kernel's attribute was set before.
    u32 most = function->most_dynamic > 48 * 1024 ? kernel->shared + function->most_dynamic : 48 * 1024;
    if (kernel->shared > 48 * 1024 || kernel->shared + config->shared > most) return fault(INVALID, "%s: too much shared memory", kernel->name);
    if (work.launch.cooperative && blocks > MULTIPROCESSORS) return TOO_LARGE;
    u8 *parameters = calloc(1, kernel->parameters + 1);
    for (u32 i = 0; i < kernel->count; i++)
        memcpy(parameters + kernel->parameter[i].offset, arguments[i], kernel->parameter[i].size);
    work.launch.parameters = parameters;
    return give(stream, work);
}
