/* The time of day, so many seconds from this machine's as the file says that QUOTA_TEST_CLOCK names: for a program that
   preloads it. (libfaketime does not go with the allocator of Redis: each calls the other before it is ready.) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead(void) {
    const char *path = getenv("QUOTA_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[16] = {0};
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += ahead();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int failed = (int)syscall(SYS_gettimeofday, now, zone);
    if (!failed && now) now->tv_sec += ahead();
    return failed;
}

time_t time(time_t *now) {
    struct timeval day;
    gettimeofday(&day, NULL);
    if (now) *now = day.tv_sec;
    return day.tv_sec;
}
