/* cli/serve_listen.c: the listening socket of `slm2 serve`, made here and not by libmicrohttpd so that the reason is known
 * when it cannot be. Without TLS only loopback addresses: browsers give isolation to those alone over plain http.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE

#include "cli/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_loopback(const struct sockaddr *a) {
  if (a->sa_family == AF_INET) {
    struct sockaddr_in v4;
    memcpy(&v4, a, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  struct sockaddr_in6 v6;
  if (a->sa_family != AF_INET6) return false;
  memcpy(&v6, a, sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

bool serve_local_address(int fd, char address[64], uint16_t *port) {
  struct sockaddr_storage a;
  socklen_t n = sizeof a;
  char digits[48], service[8];
  uint64_t number;
  if (getsockname(fd, (struct sockaddr *)&a, &n) != 0) return false;
  if (getnameinfo((struct sockaddr *)&a, n, digits, sizeof digits, service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return false;
  if (!cli_number(service, strlen(service), 1, UINT16_MAX, &number)) return false;
  *port = (uint16_t)number;
  snprintf(address, 64, strchr(digits, ':') != NULL ? "[%s]" : "%s", digits);
  return true;
}

/* Makes the socket; 0 or errno. SO_REUSEADDR lets a new server follow an ended one at once; two at a time still cannot. */
static int open_socket(const struct addrinfo *a, int *out) {
  int fd = socket(a->ai_family, SOCK_STREAM, 0), yes = 1;
  if (fd < 0) return errno;
  bool ok = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
            (a->ai_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) == 0) &&
            bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
  if (ok) {
    *out = fd;
    return 0;
  }
  int code = errno;
  close(fd);
  return code;
}

static int complain_bind(const char *host, uint16_t port, int code) {
  if (code == EADDRINUSE)
    return cli_complain(CLI_FAILED, "serve", "port %u of %.200s is in use, perhaps by another slm2 serve: end that one, or take "
                        "another with --port (what the page stored belongs to the port it was stored from)", port, host);
  return cli_complain(CLI_FAILED, "serve", "port %u of %.200s cannot be opened: %s", port, host, strerror(code));
}

void serve_socket_close(serve_socket *s) {
  close(s->fd);
  s->fd = -1;
}

int serve_listen(const char *host, uint16_t port, bool tls, serve_socket *out) {
  char service[8];
  snprintf(service, sizeof service, "%u", port);
  if (strcmp(host, "localhost") == 0) host = "127.0.0.1";
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *found = NULL;
  int failed = getaddrinfo(host, service, &hints, &found);
  bool name = failed != 0;
  if (name && tls) {
    hints.ai_flags = AI_NUMERICSERV;
    failed = getaddrinfo(host, service, &hints, &found);
  }
  if (failed != 0 && tls) return cli_complain(CLI_FAILED, "--host", "%.200s: %s", host, gai_strerror(failed));
  *out = (serve_socket){.fd = -1, .loopback = failed == 0 && is_loopback(found->ai_addr)};
  int code = CLI_OK;
  if (!out->loopback && !tls) {
    code = cli_complain(CLI_USAGE, "--host", "%.200s is no loopback address (127.0.0.1, ::1, localhost): it needs --cert and "
                        "--key, because browsers give no isolation over plain http", host);
  } else {
    int reason = open_socket(found, &out->fd);
    if (reason == 0 && !serve_local_address(out->fd, out->address, &out->port)) {
      reason = errno;
      close(out->fd);
    }
    if (reason != 0) code = complain_bind(host, port, reason);
    else if (name) snprintf(out->address, sizeof out->address, "%.63s", host);
  }
  if (found != NULL) freeaddrinfo(found);
  return code;
}
