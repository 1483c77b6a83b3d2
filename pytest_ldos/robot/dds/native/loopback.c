/* A library to preload: UDP sockets bound to all devices receive from the loopback device only.
 *
 * PYTEST_LDOS_LOOPBACK=FIRST-LAST names the ports; sockets on other ports are not changed.
 * With "address" appended (FIRST-LAST,address), such a socket is bound to 127.0.0.1 or ::1. Otherwise it keeps its
 * address, and the kernel drops packets that did not arrive over `lo`: middleware may announce to peers on this machine
 * another of its addresses, and packets that they send there also arrive over `lo`.
 *
 * Reference: bind(2), socket(7) (SO_ATTACH_FILTER), ip(7).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*bind_function)(int, const struct sockaddr *, socklen_t);

static bind_function next_bind;
static int first_port = 1;
static int last_port = 0;
static bool by_address;

__attribute__((constructor)) static void read_settings(void) {
  *(void **)&next_bind = dlsym(RTLD_NEXT, "bind");
  const char *text = getenv("PYTEST_LDOS_LOOPBACK");
  if (text == NULL || sscanf(text, "%d-%d", &first_port, &last_port) != 2) {
    last_port = 0;
    return;
  }
  by_address = strstr(text, ",address") != NULL;
}

union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

/* Copies a wildcard address; returns false for any other address, which is not changed. */
static bool is_of_every_device(const struct sockaddr *given, socklen_t size, union address *copy) {
  if (given == NULL || size < sizeof(sa_family_t)) return false;
  if (given->sa_family == AF_INET && size >= sizeof copy->v4) {
    memcpy(&copy->v4, given, sizeof copy->v4);
    return copy->v4.sin_addr.s_addr == htonl(INADDR_ANY);
  }
  if (given->sa_family == AF_INET6 && size >= sizeof copy->v6) {
    memcpy(&copy->v6, given, sizeof copy->v6);
    return IN6_IS_ADDR_UNSPECIFIED(&copy->v6.sin6_addr);
  }
  return false;
}

static bool is_meant(int socket, const union address *address) {
  const int port = ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
  int type = 0;
  socklen_t size = sizeof type;
  return port >= first_port && port <= last_port && getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_DGRAM;
}

static void set_loopback_address(union address *address) {
  if (address->any.sa_family == AF_INET)
    address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  else
    address->v6.sin6_addr = in6addr_loopback;
}

static int drop_what_other_devices_bring(int socket) {
  const unsigned int loopback = if_nametoindex("lo");
  if (loopback == 0) return -1;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned int)(SKF_AD_OFF + SKF_AD_IFINDEX)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, loopback, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, ~0U),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
  return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

__attribute__((visibility("default"))) int bind(int socket, const struct sockaddr *given, socklen_t size) {
  union address address;
  if (next_bind == NULL) read_settings(); /* another library's constructor binds before this one's ran */
  if (!is_of_every_device(given, size, &address) || !is_meant(socket, &address)) return next_bind(socket, given, size);
  if (by_address) {
    set_loopback_address(&address);
    return next_bind(socket, &address.any, address.any.sa_family == AF_INET ? sizeof address.v4 : sizeof address.v6);
  }
  if (drop_what_other_devices_bring(socket) != 0) return -1;
  return next_bind(socket, given, size);
}
