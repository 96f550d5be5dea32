// The log: a line for each call, and for each mistake. And the lock, which keeps one thread's calls from another's.
#define _GNU_SOURCE
#include "driver.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

int lock(void) { return pthread_mutex_lock(&mutex); }
void unlock(int *locked) { pthread_mutex_unlock(&mutex); }

static void write_line(const char *begin, const char *format, va_list values) {
    LOCKED;
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

void say(const char *format, ...) {
    va_list values;
    va_start(values, format), write_line("", format, values), va_end(values);
}

Result fault(Result result, const char *format, ...) {
    va_list values;
    va_start(values, format), write_line("FAULT ", format, values), va_end(values);
    return result;
}

void machine_mark(const char *text) { say("# %s", text); }
