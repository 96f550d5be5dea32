// Memory: device memory is the host's, by address in order. New memory is full of NaN, but for pieces over 256 MiB: they
// are full of zeros, of which the system holds none until they are touched. What was freed stays known, and cannot be
// touched again.
#define _GNU_SOURCE
#include "driver.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FULL_OF_NAN = 256 << 20 };
const char *const NAMES[] = {"pageable", "pinned", "device", "freed"};
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

static Piece *living(const void *p) {
    Piece *piece = holding(p);
    return piece && piece->kind != GONE ? piece : 0;
}

int find(u64 address, u64 *begin, u64 *end) {
    Piece *piece = living((void *)address);
    if (!piece) return 0;
    *begin = (u64)piece->at, *end = *begin + piece->size;
    return 1;
}

static void *mapped(void *at, u64 size, int use) {  // and a page behind it
    return mmap(at, (size + 4095) / 4096 * 4096 + 4096, use, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

static Result make(void **p, u64 size, int kind, const char *name) {
    LOCKED;
    say("%s %llu", name, (long long)size);
    if (!size) return INVALID;
    u8 *at = mapped(0, size, PROT_READ | PROT_WRITE);
    if (at == MAP_FAILED) return MEMORY;
    if (size <= FULL_OF_NAN) memset(at, 0xFF, size);
    if (count == room) pieces = realloc(pieces, (room = 2 * room + 64) * sizeof *pieces);
    u64 i = up_to(at);
    memmove(pieces + i + 1, pieces + i, (count - i) * sizeof *pieces);
    pieces[i] = (Piece){at, size, kind}, count++;
    *p = at;
    return OK;
}

static Result release(void *p, int kind, const char *name) {
    LOCKED;
    say("%s", name);
    if (capturing_here) return fault(CAPTURE, "%s during a capture", name);
    finish_all();
    u64 i = up_to(p);
    if (!i || pieces[i - 1].at != p || pieces[i - 1].kind != kind) return fault(INVALID, "%s of what cannot be freed", name);
    pieces[i - 1].kind = GONE, mapped(p, pieces[i - 1].size, PROT_NONE);
    return OK;
}

int kind_of(void *p) {
    Piece *piece = holding(p);
    return piece ? piece->kind : PAGEABLE;
}

Result check(void *p, u64 size) {
    Piece *piece = holding(p);
    if (!piece) return OK;
    if (piece->kind == GONE) return fault(INVALID, "memory that was freed is used");
    if ((u8 *)p + size > piece->at + piece->size) return fault(INVALID, "%llu bytes reach past their memory", (long long)size);
    return OK;
}

Result cuMemAlloc(void **p, u64 size) { return make(p, size, DEVICE, "cuMemAlloc"); }
Result cuMemHostAlloc(void **p, u64 size, u32 flags) { return make(p, size, PINNED, "cuMemHostAlloc"); }
Result cuMemFree(void *p) { return release(p, DEVICE, "cuMemFree"); }
Result cuMemFreeHost(void *p) { return release(p, PINNED, "cuMemFreeHost"); }
Result cuMemGetInfo(u64 *left, u64 *all) { return *left = *all = 1ull << 34, OK; }
Result cuMemHostGetDevicePointer(void **device, void *host, u32 flags) {
    LOCKED;
    if (kind_of(host) != PINNED) return fault(INVALID, "the device's address of memory that it does not see");
    return *device = host, OK;
}
Result cuMemGetAddressRange(void **at, u64 *size, void *p) {
    LOCKED;
    Piece *piece = living(p);
    return piece ? (*at = piece->at, *size = piece->size, OK) : NOT_FOUND;
}
enum { MEMORY_TYPE = 2 };                             // CU_POINTER_ATTRIBUTE_...
enum { MEMORYTYPE_HOST = 1, MEMORYTYPE_DEVICE = 2 };  // CU_...
Result cuPointerGetAttribute(void *value, int which, void *p) {
    LOCKED;
    Piece *piece = living(p);
    if (!piece) return INVALID;
    if (which == MEMORY_TYPE) *(int *)value = piece->kind == DEVICE ? MEMORYTYPE_DEVICE : MEMORYTYPE_HOST;
    else *(void **)value = p;
    return OK;
}
