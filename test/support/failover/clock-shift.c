// A library to preload into a program. It shifts the clock of the program by the seconds that the
// file CLOCK_SHIFT_FILE holds: ahead of the clock of the machine, or behind it if the number is
// negative. A change of the file takes effect at once, as a step of the machine's clock does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *seconds;
static int (*real_gettimeofday)(struct timeval *restrict, void *restrict);
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void start(void) {
  real_gettimeofday = dlsym(RTLD_NEXT, "gettimeofday");
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  const char *name = getenv("CLOCK_SHIFT_FILE");
  int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) seconds = mapped;
  close(file);
}

static int64_t shift(void) { return seconds ? *seconds : 0; }

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  if (!real_gettimeofday) start();
  int result = real_gettimeofday(now, zone);
  now->tv_sec += shift();
  return result;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  if (!real_clock_gettime) start();
  int result = real_clock_gettime(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += shift();
  return result;
}

time_t time(time_t *now) {
  struct timespec full;
  clock_gettime(CLOCK_REALTIME, &full);
  if (now) *now = full.tv_sec;
  return full.tv_sec;
}
