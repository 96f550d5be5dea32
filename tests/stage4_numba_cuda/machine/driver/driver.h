// A CUDA driver that needs no GPU, libcuda.so.1: the functions that numba-cuda and stage 4 call. warps.h runs the kernels.
//
// Each call is a line in MACHINE_LOG: its name, and what matters about it. FAULT begins a line that tells of a mistake of
// the caller or of a kernel; it is printed, too, and is that call's error.
// MACHINE_PYTHON is the interpreter for image.py, MACHINE_ROOT the project, MACHINE_SEED a number that changes the order
// in which threads and streams take turns, MACHINE_CAPABILITY the compute capability: 9.0 unless it is set.
//
// This header has what the driver's parts share.
#pragma once
#include "../kernel.h"
#include <time.h>

typedef int Result;
enum { OK = 0, INVALID = 1, MEMORY = 2, NO_DEVICE = 100, NO_CONTEXT = 201, PTX = 218, HANDLE = 400 };
enum { ILLEGAL_STATE = 401, NOT_FOUND = 500, NOT_READY = 600, FAILED = 719, TOO_LARGE = 720, CAPTURE = 900, CAPTURE_ENDS = 906 };
enum { MULTIPROCESSORS = 132 };

#pragma GCC visibility push(hidden)  // a program finds the driver's calls only

// log.c
// A call that reads or changes what all share begins with LOCKED and holds the lock until it returns, kernels included. A
// call may be inside another of the same thread.
int lock(void);
void unlock(int *);
#define LOCKED int locked __attribute__((cleanup(unlock), unused)) = lock()
void say(const char *format, ...);
Result fault(Result result, const char *format, ...);  // a mistake of the caller; returns `result`

// memory.c
enum { PAGEABLE, PINNED, DEVICE, GONE };
extern const char *const NAMES[];
int find(u64 address, u64 *begin, u64 *end);
int kind_of(void *p);
Result check(void *p, u64 size);  // an error if so many bytes from p on were freed, or reach past their piece

// device.c
u32 most_shared(void);  // bytes of a block where the driver was asked to allow more than 48 KB

// work.c
typedef struct { const Kernel *kernel; int number; Run run; u32 most_dynamic; } Function;  // most_dynamic: bytes that a launch may give
typedef struct Stream Stream;
typedef struct { Stream *stream; u64 number; } Place;  // in the work of a stream: behind that of this number
typedef struct { Place at; struct timespec time; } Event;
typedef struct {
    enum { COPY, FILL, LAUNCH, RECORD, WAIT } kind;
    u64 number;  // work is numbered in the order in which it is given, over all streams
    void *to, *from;
    u64 size;
    int owned;  // COPY: from is the driver's own, and is given back
    u8 value;   // FILL
    Event *event;
    Place until;  // WAIT
    Function *function;
    Launch launch;
} Work;
typedef struct { Work *work; u64 count, room; int gone; } List;
struct Stream {
    int apart, capturing, gone;  // apart: it does not wait for the default stream, nor that for it
    List captured, queue;
    u64 begun;  // so much of the queue has been done
    Stream *next;
};

extern Result broken;  // what every call answers after a kernel failed, as with a device
extern int capturing;                // streams
extern __thread int capturing_here;  // those whose capture this thread has begun
Stream *stream_of(void *handle);
Result give(Stream *stream, Work work);  // to do, or to capture
Result finish_all(void);

#pragma GCC visibility pop
