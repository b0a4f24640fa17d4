/* cli/serve.h: the parts of `slm2 serve`: untrusted text, files, the listening socket, HTTP. docs/SERVE.md says what the
 * server promises. The sockets live here and not in the library, which has none.
 */
#ifndef SLM2_SERVE_H
#define SLM2_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/cli.h"

/* An address of its own, because browsers keep the stored models by it: the keys of "SLM2" on a telephone. Neither
 * in Debian's /etc/services, nor among the ports that browsers refuse, nor in a system's range for outgoing connections. */
#define SERVE_PORT 7562u

/* --- serve_path.c: what a client sent, without any system call ----------------- */

/* A request target: "/path?query", or "http://authority/path?query", whose authority then replaces Host (RFC 9112, 3.2). */
typedef struct serve_target {
  const char *authority; /* NULL: none */
  size_t n_authority;
  const char *path; /* begins with '/' */
  size_t n_path;
  const char *rest; /* path and query */
  size_t n_rest;
} serve_target;
bool serve_target_parse(const char *text, size_t n, serve_target *out);

#define SERVE_PATH_MAX 1024u
/* Decodes a path to a name below a root: "/a%20b/" to "a b/", "/" to "". Returns 200; 400 for what no link of ours holds:
 * a bad escape, "..", ".", an empty segment, a backslash, an encoded slash, a control byte or NUL, ill-formed UTF-8,
 * too long; 404 for a hidden name, one that begins with a dot. out is written only with 200. */
unsigned serve_path_decode(const char *path, size_t n, char out[SERVE_PATH_MAX]);

typedef enum serve_host { SERVE_HOST_OURS, SERVE_HOST_LOCALHOST, SERVE_HOST_FOREIGN, SERVE_HOST_BAD } serve_host;
/* host: of a Host header or an authority. names: what we are called, "127.0.0.1", "[::1]", "box.lan"; a port that is the
 * scheme's own may be left out, as browsers do. */
serve_host serve_host_check(const char *host, size_t n, const char *const *names, size_t n_names, uint16_t port,
                            uint16_t scheme_port);

typedef enum serve_range { SERVE_WHOLE, SERVE_PART, SERVE_UNSATISFIABLE } serve_range;
/* A Range header over size bytes (RFC 9110, 14.1.2). SERVE_PART sets *first and *count >= 1. Anything but one range of
 * bytes gives the whole, as the RFC allows. */
serve_range serve_range_parse(const char *text, size_t n, uint64_t size, uint64_t *first, uint64_t *count);

/* Whether a list of entity tags (or "*") names etag, itself with its quotes; weak: as If-None-Match compares, "W/" not
 * counting. A malformed list names nothing. */
bool serve_etag_listed(const char *list, size_t n, const char *etag, bool weak);

const char *serve_mime(const char *name); /* by its ending, of any case */

/* --- serve_file.c: what is served ------------------------------------------------ */

#define SERVE_ETAG_MAX 67u /* 64 hex digits in quotes, NUL */
typedef struct serve_entity {
  int fd;            /* -1: bytes holds it; otherwise the receiver closes it */
  const char *bytes; /* kept by the server */
  uint64_t n;
  char etag[SERVE_ETAG_MAX]; /* strong: another one whenever the content is */
  const char *type, *cache;
} serve_entity;

typedef struct serve_files serve_files;
/* Opens and checks everything: root (NULL: the one beside this program), the models, and root's models/demo.slm2 when it is
 * there. Says why it failed. */
int serve_files_open(const char *root, const cli_strings *models, serve_files **out);
void serve_files_close(serve_files *files);
uint32_t serve_files_models(const serve_files *files);
/* name as serve_path_decode gives it. 200, 404, or 500 for a file that cannot be read or a model that was changed. */
unsigned serve_files_find(const serve_files *files, const char *name, serve_entity *out);
void serve_entity_close(const serve_entity *entity);

/* --- serve_listen.c: the socket ---------------------------------------------------- */

typedef struct serve_socket {
  int fd;
  bool loopback;
  uint16_t port; /* the real one, also when 0 was asked for */
  char address[64]; /* as a URL has it: 127.0.0.1, [::1] */
} serve_socket;
/* host: an address in digits, "localhost" or, with TLS, a name of this machine. Without TLS only loopback. */
int serve_listen(const char *host, uint16_t port, bool tls, serve_socket *out);
void serve_socket_close(serve_socket *socket);
/* The address and port that the client of fd reached, in the same form. */
bool serve_local_address(int fd, char address[64], uint16_t *port);

/* --- serve_http.c ------------------------------------------------------------------- */

typedef struct serve_options {
  const char *host, *certificate, *key; /* PEM text; both NULL: plain http */
  bool verbose;
} serve_options;
/* Serves until Ctrl-C. Owns the socket from here on. */
int serve_http(const serve_options *options, const serve_files *files, serve_socket *socket);

#endif
