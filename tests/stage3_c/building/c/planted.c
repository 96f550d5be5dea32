/* One planted error of each kind, named by the first argument; "none" is a program without any. The tests run these
   first: a tool that does not find what was planted would find nothing in the real tests either. */

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept; /* volatile: or the compiler may see that nobody looks, and leave the error out */
static volatile int number = INT_MAX;
static volatile size_t beyond = 8;
static int shared_number;

static void *add_one(void *argument) {
    shared_number++;
    return argument;
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "none";
    if (strcmp(kind, "read_beyond") == 0) {
        volatile char *block = kept = malloc(8);
        if (block == NULL) return 0;
        block[0] = 1;
        number = block[beyond];
        free(kept);
    } else if (strcmp(kind, "undefined") == 0) {
        number = number + 1;
    } else if (strcmp(kind, "leak") == 0) {
        kept = malloc(8);
        kept = NULL;
    } else if (strcmp(kind, "race") == 0) {
        pthread_t other;
        if (pthread_create(&other, NULL, add_one, NULL) != 0) return 0;
        add_one(NULL);
        pthread_join(other, NULL);
    }
    return 0;
}
