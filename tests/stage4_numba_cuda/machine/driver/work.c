// Work: copies, fills and launches. Each stream has a queue; which of them goes on is drawn by lot. And events.
//
// Work is done late, as a device may: when the host asks for a result. Memory that is changed or freed too early gives
// wrong numbers then. A call that waits for a stream has the work of that stream done, and of the others some or none.
#define _GNU_SOURCE
#include "driver.h"
#include <stdlib.h>
#include <string.h>

Result broken;
int capturing;
__thread int capturing_here;
static Stream legacy;  // the default stream, and the first in the list of all that have work or may get some
static u64 given;      // the number of the work that was given last

Stream *stream_of(void *handle) { return (u64)handle < 3 ? &legacy : handle; }  // a thread has no default stream of its own

Result give(Stream *stream, Work work) {
    if (stream->gone) return fault(HANDLE, "a stream that was destroyed is used");
    List *list = stream->capturing ? &stream->captured : &stream->queue;
    if (list->count == list->room) list->work = realloc(list->work, (list->room = 2 * list->room + 16) * sizeof work);
    work.number = ++given;
    list->work[list->count++] = work;
    return broken;
}

static u64 seed(void) {
    const char *number = getenv("MACHINE_SEED");
    return number ? strtoull(number, 0, 10) : 0;
}

static u64 draw(u64 many) {
    static u64 drawn;
    if (!drawn) drawn = 2 * seed() + 1;
    return lot(&drawn) % many;
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
    case RECORD:
        if (work->event->at.number == work->number) clock_gettime(CLOCK_MONOTONIC, &work->event->time);
        return OK;
    case WAIT:
        return OK;
    case LAUNCH:
        work->launch.find = find, work->launch.said = said;
        work->launch.seed = seed() * 1000003 + ++launches;
        if (work->function->run(work->function->number, &work->launch))
            return fault(broken = FAILED, "%s, grid %u x %u x %u of %u x %u x %u threads: %s", work->function->kernel->name,
                         work->launch.grid[0], work->launch.grid[1], work->launch.grid[2], work->launch.block[0],
                         work->launch.block[1], work->launch.block[2], said);
    }
    return OK;
}

static Work *next(Stream *stream) { return stream->begun < stream->queue.count ? &stream->queue.work[stream->begun] : 0; }
static int reached(Place place) { return !place.stream || !next(place.stream) || next(place.stream)->number > place.number; }

// A stream whose work comes before the next one of this stream: that of an event that it waits for. The default stream
// waits for what was given to the others before, and they for what was given to it. 0 if nothing does.
static Stream *before(Stream *stream) {
    Work *work = next(stream);
    if (work->kind == WAIT && !reached(work->until)) return work->until.stream;
    for (Stream *other = &legacy; other && !stream->apart; other = other->next)
        if (other != stream && !other->apart && (stream == &legacy || other == &legacy) && !reached((Place){other, work->number}))
            return other;
    return 0;
}

static void leave(Stream *stream) {  // it is not freed: events may name it
    for (Stream *other = &legacy; other; other = other->next)
        if (other->next == stream) other->next = stream->next;
}

// Do the next work of a stream, or of one that comes before. After a mistake nothing more is done.
static void step(Stream *stream) {
    for (Stream *other; (other = before(stream));) stream = other;  // each has older work than the one before: it ends
    Work *work = next(stream);
    if (!broken) done(work);
    if (work->kind == LAUNCH) free((void *)work->launch.parameters);
    if (work->owned) free(work->from);
    if (++stream->begun < stream->queue.count) return;
    stream->begun = stream->queue.count = 0;
    if (stream->gone) leave(stream);
}

static Stream *any(void) {  // a stream that has work, by lot
    Stream *found = 0;
    u64 many = 0;
    for (Stream *stream = &legacy; stream; stream = stream->next)
        if (next(stream) && !draw(++many)) found = stream;
    return found;
}

Result finish_all(void) {
    for (Stream *stream; (stream = any());) step(stream);
    return broken;
}

static Result finish(Place place) {
    u64 others = draw(3);  // do the others stand still meanwhile, or go on now and then, or as well as this one?
    while (!reached(place)) step(draw(2) < others ? any() : place.stream);
    return broken;
}

static Result copy(const char *name, void *to, void *from, u64 size, void *handle, int waits) {
    LOCKED;
    Stream *stream = stream_of(handle);
    int source = kind_of(from), target = kind_of(to);
    say("%s %s to %s%s", name, NAMES[source], NAMES[target], stream->capturing ? ", captured" : "");
    Result wrong = check(from, size);
    if (wrong || (wrong = check(to, size))) return wrong;
    Work work = {COPY, .to = to, .from = from, .size = size};
    if (stream->capturing) {
        if (waits) return fault(CAPTURE, "a copy that waits is captured");
        if (source == PAGEABLE || target == PAGEABLE) return fault(CAPTURE, "a copy of memory that may be moved is captured");
        return give(stream, work);
    }
    if (source == PAGEABLE && !waits) work.from = memcpy(malloc(size), from, size), work.owned = 1;  // read at once
    if ((wrong = give(stream, work))) return wrong;
    return waits || target == PAGEABLE ? finish((Place){stream, given}) : OK;
}

Result cuMemcpyHtoD(void *to, void *from, u64 size) { return copy("cuMemcpyHtoD", to, from, size, 0, 1); }
Result cuMemcpyDtoH(void *to, void *from, u64 size) { return copy("cuMemcpyDtoH", to, from, size, 0, 1); }
Result cuMemcpyDtoD(void *to, void *from, u64 size) { return copy("cuMemcpyDtoD", to, from, size, 0, 0); }
Result cuMemcpyHtoDAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyHtoDAsync", to, from, n, s, 0); }
Result cuMemcpyDtoHAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyDtoHAsync", to, from, n, s, 0); }
Result cuMemcpyDtoDAsync(void *to, void *from, u64 n, void *s) { return copy("cuMemcpyDtoDAsync", to, from, n, s, 0); }

Result cuMemsetD8Async(void *to, u8 value, u64 size, void *handle) {
    LOCKED;
    Result wrong = kind_of(to) == PAGEABLE ? fault(INVALID, "memory that the device does not see is filled") : check(to, size);
    return wrong ? wrong : give(stream_of(handle), (Work){FILL, .to = to, .size = size, .value = value});
}
Result cuMemsetD8(void *to, u8 value, u64 size) { return cuMemsetD8Async(to, value, size, 0); }

enum { NON_BLOCKING = 1 };  // CU_STREAM_...
Result cuStreamCreate(void **handle, u32 flags) {
    LOCKED;
    Stream *stream = calloc(1, sizeof *stream);
    say("cuStreamCreate");
    stream->apart = flags & NON_BLOCKING, stream->next = legacy.next, legacy.next = *handle = stream;
    return OK;
}
Result cuStreamDestroy(void *handle) {  // what was given to it is still done
    LOCKED;
    Stream *stream = stream_of(handle);
    say("cuStreamDestroy");
    if (stream == &legacy || stream->gone) return fault(HANDLE, "a stream is destroyed that does not exist");
    if (stream->capturing) return fault(CAPTURE, "a stream is destroyed during its capture");
    stream->gone = 1;
    if (!next(stream)) leave(stream);
    return OK;
}
Result cuStreamSynchronize(void *handle) {
    LOCKED;
    say("cuStreamSynchronize");
    return stream_of(handle)->capturing ? fault(CAPTURE, "a wait for a stream that is captured") : finish((Place){stream_of(handle), given});
}
Result cuCtxSynchronize(void) {
    LOCKED;
    say("cuCtxSynchronize");
    return capturing ? fault(CAPTURE, "a wait for the device during a capture") : finish_all();
}

Result cuEventCreate(void **event, u32 flags) { return *event = calloc(1, sizeof(Event)), OK; }
Result cuEventDestroy(Event *event) { return OK; }  // it is not freed: it may still be recorded
Result cuEventRecord(Event *event, void *handle) {
    LOCKED;
    Stream *stream = stream_of(handle);
    if (stream->capturing) return fault(CAPTURE, "an event is recorded in a capture, of which this machine knows nothing");
    event->at = (Place){stream, given + 1};
    return give(stream, (Work){RECORD, .event = event});
}
Result cuStreamWaitEvent(void *handle, Event *event, u32 flags) {
    LOCKED;
    Stream *stream = stream_of(handle);
    if (stream->capturing) return fault(CAPTURE, "a wait for an event in a capture, of which this machine knows nothing");
    return give(stream, (Work){WAIT, .until = event->at});
}
Result cuEventQuery(Event *event) {  // each time the device has done a little more
    LOCKED;
    if (!reached(event->at)) step(any());
    return broken ? broken : reached(event->at) ? OK : NOT_READY;
}
Result cuEventSynchronize(Event *event) {
    LOCKED;
    return finish(event->at);
}
Result cuEventElapsedTime(float *milliseconds, Event *from, Event *to) {
    LOCKED;
    if (!from->at.number || !to->at.number) return HANDLE;
    if (!reached(from->at) || !reached(to->at)) return NOT_READY;
    *milliseconds = (to->time.tv_sec - from->time.tv_sec) * 1e3 + (to->time.tv_nsec - from->time.tv_nsec) / 1e6;
    return OK;
}
