// Graphs: the work of a stream that was captured, and its replays.
#include "driver.h"
#include <stdlib.h>
#include <string.h>

Result cuStreamBeginCapture(void *handle, int mode) {
    LOCKED;
    Stream *stream = stream_of(handle);
    say("cuStreamBeginCapture");
    if (!handle || handle == (void *)1) return fault(CAPTURE, "the default stream cannot be captured");
    if (!stream->apart) return fault(CAPTURE_ENDS, "work on the default stream would end the capture of this one");
    if (stream->capturing) return fault(ILLEGAL_STATE, "a capture begins in a capture");
    memset(&stream->captured, 0, sizeof stream->captured);
    stream->capturing = 1, capturing++, capturing_here++;
    return OK;
}

Result cuStreamEndCapture(void *handle, void **graph) {
    LOCKED;
    Stream *stream = stream_of(handle);
    say("cuStreamEndCapture");
    if (!stream->capturing) return INVALID;
    stream->capturing = 0, capturing--, capturing_here--;
    List *list = *graph = malloc(sizeof *list);
    return *list = stream->captured, OK;
}

Result cuGraphInstantiate(void **made, List *graph, u64 flags) {
    say("cuGraphInstantiate");
    List *list = *made = malloc(sizeof *list);
    return *list = *graph, OK;
}

static Result forget(const char *name, List *graph) {  // its work is shared by a graph and what was made of it, and stays
    LOCKED;
    say("%s", name);
    if (graph->gone) return fault(INVALID, "a graph is destroyed twice");
    return graph->gone = 1, OK;
}
Result cuGraphDestroy(List *graph) { return forget("cuGraphDestroy", graph); }
Result cuGraphExecDestroy(List *graph) { return forget("cuGraphExecDestroy", graph); }

static u8 *copied(const Kernel *kernel, const u8 *from) { return memcpy(malloc(kernel->parameters + 1), from, kernel->parameters); }

Result cuGraphLaunch(List *graph, void *handle) {
    LOCKED;
    Stream *stream = stream_of(handle);
    Result wrong;
    u64 copies = 0;
    for (u64 i = 0; i < graph->count; i++) copies += graph->work[i].kind == COPY;
    say("cuGraphLaunch %llu nodes, %llu of them copies", (long long)graph->count, (long long)copies);
    if (graph->gone) return fault(INVALID, "a graph that was destroyed is launched");
    for (u64 i = 0; i < graph->count; i++) {  // all of it, or nothing
        Work *work = &graph->work[i];
        wrong = work->kind == LAUNCH ? OK : check(work->to, work->size);
        if (work->kind == COPY && !wrong) wrong = check(work->from, work->size);
        if (wrong) return wrong;
    }
    for (u64 i = 0; i < graph->count; i++) {
        Work work = graph->work[i];
        if (work.kind == LAUNCH) work.launch.parameters = copied(work.function->kernel, work.launch.parameters);
        if ((wrong = give(stream, work))) return wrong;
    }
    return broken;
}
