/* Loaded before a program's own libraries: lets its fsync fail, and steps its clock, as the file beside it says.

   The file `<this library>.control` holds four 64-bit integers: seconds that the clock is off; how many syncs are to
   fail yet; which of them (1: of the write-ahead log, 2: of tables); how many have failed. All programs share it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    _Atomic long long offset, failures, which, failed;
};

static struct control still, *control = &still;

__attribute__((constructor)) static void attach(void) {
    Dl_info own;
    char path[PATH_MAX];
    if (!dladdr((void *)&attach, &own))
        return;
    snprintf(path, sizeof path, "%s.control", own.dli_fname);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    void *shared = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED)
        control = shared;
    close(file);
}

static int fails(int file) {
    char link[64], path[PATH_MAX];
    if (control->failures <= 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    if (!strstr(path, control->which == 1 ? "/pg_wal/" : "/base/"))
        return 0;
    if (atomic_fetch_sub(&control->failures, 1) <= 0)
        return 0;
    control->failed++;
    errno = EIO;
    return 1;
}

int fsync(int file) {
    static int (*own)(int);
    if (!own)
        own = dlsym(RTLD_NEXT, "fsync");
    return fails(file) ? -1 : own(file);
}

int fdatasync(int file) {
    static int (*own)(int);
    if (!own)
        own = dlsym(RTLD_NEXT, "fdatasync");
    return fails(file) ? -1 : own(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*own)(clockid_t, struct timespec *);
    if (!own)
        own = dlsym(RTLD_NEXT, "clock_gettime");
    int result = own(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += control->offset;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *result) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (result)
        *result = exact.tv_sec;
    return exact.tv_sec;
}
