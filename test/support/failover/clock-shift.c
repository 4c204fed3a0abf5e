// A library to preload into PostgreSQL. It shifts the clock of the program by CLOCK_SHIFT_SECONDS
// seconds: ahead of the clock of the machine, or behind it if the number is negative.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
  const char *seconds = getenv("CLOCK_SHIFT_SECONDS");
  return seconds ? atol(seconds) : 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
  int result = real(now, zone);
  now->tv_sec += shift();
  return result;
}

time_t time(time_t *now) {
  time_t (*real)(time_t *) = dlsym(RTLD_NEXT, "time");
  time_t shifted = real(NULL) + shift();
  if (now) *now = shifted;
  return shifted;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += shift();
  return result;
}
