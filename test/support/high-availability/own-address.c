/*
 * A library for LD_PRELOAD. It gives the outgoing TCP connections of a program to loopback the
 * address of loopback that OWN_ADDRESS names, so that a relay sees from which machine of a test a
 * connection comes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

static int is_unbound(int descriptor) {
  struct sockaddr_in bound;
  socklen_t size = sizeof bound;
  return getsockname(descriptor, (struct sockaddr *)&bound, &size) == 0 &&
         bound.sin_family == AF_INET && bound.sin_port == 0;
}

static int is_loopback(const struct sockaddr *target) {
  return target->sa_family == AF_INET &&
         ntohl(((const struct sockaddr_in *)target)->sin_addr.s_addr) >> 24 == 127;
}

int connect(int descriptor, const struct sockaddr *target, socklen_t size) {
  static int (*original)(int, const struct sockaddr *, socklen_t);
  if (!original) *(void **)&original = dlsym(RTLD_NEXT, "connect");
  const char *own = getenv("OWN_ADDRESS");
  if (own && is_loopback(target) && is_unbound(descriptor)) {
    struct sockaddr_in from = {.sin_family = AF_INET};
    inet_pton(AF_INET, own, &from.sin_addr);
    int yes = 1; /* the port is chosen by the original, so that many connections fit */
    setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    bind(descriptor, (struct sockaddr *)&from, sizeof from);
  }
  return original(descriptor, target, size);
}
