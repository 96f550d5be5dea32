// Work: copies, fills and launches, which wait in one queue for all streams; and events.
//
// Work is done late, as a device may: when the host asks for a result. Memory that is changed or freed too early gives
// wrong numbers then.
#define _GNU_SOURCE
#include "driver.h"
#include <stdlib.h>
#include <string.h>

typedef struct { int recorded, reached; struct timespec time; } Event;

List queue;
Result broken;
int capturing;
static Stream legacy;

void add(List *list, Work work) {
    if (list->count == list->room) list->work = realloc(list->work, (list->room = 2 * list->room + 16) * sizeof work);
    list->work[list->count++] = work;
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
        if (work->function->run(work->function->number, &work->launch))
            return fault(broken = FAILED, "%s, grid %u x %u x %u of %u x %u x %u threads: %s", work->function->kernel->name,
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

Result finish_work(void) {
    while (queue.count) do_one();
    return broken;
}

Stream *stream_of(void *handle) { return (u64)handle < 3 ? &legacy : handle; }

static Result copy(const char *name, void *to, void *from, u64 size, void *handle, int waits) {
    Stream *stream = stream_of(handle);
    int source = kind_of(from), target = kind_of(to);
    say("%s %s to %s%s", name, NAMES[source], NAMES[target], stream->capturing ? ", captured" : "");
    Result wrong = check(from, size);
    if (wrong || (wrong = check(to, size))) return wrong;
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
    Result wrong = kind_of(to) == PAGEABLE ? fault(INVALID, "memory that the device does not see is filled") : check(to, size);
    if (wrong) return wrong;
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
