/* cli/serve_http.c: `slm2 serve` on libmicrohttpd: which request gets which answer (RFC 9110), and the headers that every
 * answer carries. One thread and non-blocking sockets: a slow client waits for itself only, and Ctrl-C ends the loop.
 */
#include "cli/serve.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONNECTIONS 256u   /* at a time; others wait to be accepted */
#define IDLE_SECONDS 60u   /* a connection on which nothing moves for so long is closed */
#define REQUEST_BYTES 32768u /* request line and headers together: longer ones get 414 or 431 */
#define WAIT_MS 250        /* how late a Ctrl-C may be seen */

/* Isolation (shared memory needs it), no origin but our own, and nothing of the machine for a page to ask for. */
static const struct {
  const char *name, *value;
} headers_of_all[] = {
  {"Cross-Origin-Opener-Policy", "same-origin"},
  {"Cross-Origin-Embedder-Policy", "require-corp"},
  {"Cross-Origin-Resource-Policy", "same-origin"},
  {"Content-Security-Policy",
   "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; "
   "img-src 'self' data: blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
  {"X-Content-Type-Options", "nosniff"},
  {"Referrer-Policy", "no-referrer"},
  {"Permissions-Policy",
   "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), "
   "payment=(), usb=()"},
};

typedef struct server {
  const serve_options *options;
  const serve_files *files;
  const char *name; /* what --host said, or the address */
  uint64_t start_ns;
  char message[256]; /* libmicrohttpd's last */
} server;

/* From the request line to the end of the answer. */
typedef struct request {
  char *target; /* as it was sent */
  char method[16];
  bool begun;
  unsigned status;
  uint64_t bytes; /* of the answer's body */
} request;

typedef struct exchange {
  server *server;
  struct MHD_Connection *connection;
  request *request;
} exchange;

/* --- answers -------------------------------------------------------------------- */

static void add(struct MHD_Response *response, const char *name, const char *value) {
  if (MHD_add_response_header(response, name, value) != MHD_YES)
    exit(cli_complain(CLI_FAILED, "memory", "the system refuses that of a response header"));
}

/* Gives response away. */
static enum MHD_Result send_response(const exchange *e, unsigned status, struct MHD_Response *response) {
  if (response == NULL) return MHD_NO;
  for (size_t i = 0; i < CLI_COUNT(headers_of_all); i++) add(response, headers_of_all[i].name, headers_of_all[i].value);
  e->request->status = status;
  enum MHD_Result result = MHD_queue_response(e->connection, status, response);
  MHD_destroy_response(response);
  return result;
}

static struct MHD_Response *fixed_body(const char *bytes, size_t n) {
  return MHD_create_response_from_buffer(n, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
}

/* An answer that is not a file. header may be NULL. The request's own text is never in it. */
static enum MHD_Result say(const exchange *e, unsigned status, const char *header, const char *value) {
  static const struct {
    unsigned status;
    const char *text;
  } texts[] = {
    {308, "This server is reached by its address, 127.0.0.1 or [::1].\n"},
    {400, "This is no request that slm2 serve understands.\n"},
    {404, "There is nothing here.\n"},
    {405, "Only GET and HEAD are answered here.\n"},
    {412, "The file is not the one that the request names.\n"},
    {416, "The file is shorter than the range asked for.\n"},
    {421, "This server answers to its own address and port only.\n"},
    {500, "The file cannot be read, or was changed since the server started.\n"},
  };
  size_t i = 0;
  while (texts[i].status != status) i++;
  struct MHD_Response *response = fixed_body(texts[i].text, strlen(texts[i].text));
  if (response == NULL) return MHD_NO;
  e->request->bytes = strlen(texts[i].text);
  add(response, "Content-Type", "text/plain; charset=utf-8");
  add(response, "Cache-Control", "no-store");
  if (header != NULL) add(response, header, value);
  if (!e->request->begun) add(response, "Connection", "close"); /* a body may follow, which nobody reads */
  return send_response(e, status, response);
}

/* --- request headers -------------------------------------------------------------- */

typedef struct header_values {
  const char *name;
  cli_text joined; /* all its lines with commas between (RFC 9110, 5.3) */
  unsigned lines;
} header_values;

static enum MHD_Result add_value(void *user, enum MHD_ValueKind kind, const char *name, const char *value) {
  header_values *h = user;
  (void)kind;
  if (strcasecmp(name, h->name) != 0) return MHD_YES;
  if (h->lines++ > 0) cli_text_puts(&h->joined, ",");
  cli_text_puts(&h->joined, value != NULL ? value : "");
  return MHD_YES;
}

static header_values header(const exchange *e, const char *name) {
  header_values h = {.name = name};
  cli_text_puts(&h.joined, "");
  MHD_get_connection_values(e->connection, MHD_HEADER_KIND, add_value, &h);
  return h;
}

/* Whether the header is there and lists etag. */
static bool lists(const exchange *e, const char *name, const char *etag, bool weak, bool *there) {
  header_values h = header(e, name);
  bool listed = h.lines > 0 && serve_etag_listed(h.joined.bytes, h.joined.n, etag, weak);
  *there = h.lines > 0;
  cli_text_free(&h.joined);
  return listed;
}

/* A GET request may announce content, which has no meaning here. */
static bool has_body(const exchange *e) {
  header_values length = header(e, "Content-Length"), coding = header(e, "Transfer-Encoding");
  bool body = coding.lines > 0 || (length.lines > 0 && strcmp(length.joined.bytes, "0") != 0);
  cli_text_free(&length.joined);
  cli_text_free(&coding.joined);
  return body;
}

/* --- files ---------------------------------------------------------------------------- */

/* Takes entity->fd. */
static struct MHD_Response *entity_body(const serve_entity *entity, uint64_t first, uint64_t count) {
  if (entity->fd < 0) return fixed_body(entity->bytes + first, (size_t)count);
  struct MHD_Response *response = MHD_create_response_from_fd_at_offset64(count, entity->fd, first);
  if (response == NULL) serve_entity_close(entity);
  return response;
}

/* Range counts for GET only, and under If-Range only for the very same content. */
static serve_range wanted_range(const exchange *e, const serve_entity *entity, uint64_t *first, uint64_t *count) {
  if (strcmp(e->request->method, "GET") != 0) return SERVE_WHOLE;
  bool conditional, same = lists(e, "If-Range", entity->etag, false, &conditional);
  if (conditional && !same) return SERVE_WHOLE;
  header_values h = header(e, "Range");
  serve_range range = serve_range_parse(h.joined.bytes, h.joined.n, entity->n, first, count);
  cli_text_free(&h.joined);
  return range;
}

/* The preconditions in the order of RFC 9110, 13.2.2. Dates are not compared: no Last-Modified is ever sent. */
static enum MHD_Result send_entity(const exchange *e, const serve_entity *entity) {
  bool there, listed = lists(e, "If-Match", entity->etag, false, &there);
  char range[80];
  uint64_t first = 0, count = entity->n;
  if (there && !listed) {
    serve_entity_close(entity);
    return say(e, 412, NULL, NULL);
  }
  bool not_modified = lists(e, "If-None-Match", entity->etag, true, &there);
  serve_range wanted = not_modified ? SERVE_WHOLE : wanted_range(e, entity, &first, &count);
  if (wanted == SERVE_UNSATISFIABLE) {
    serve_entity_close(entity);
    snprintf(range, sizeof range, "bytes */%llu", (unsigned long long)entity->n);
    return say(e, 416, "Content-Range", range);
  }
  struct MHD_Response *response = entity_body(entity, first, count);
  if (response == NULL) return MHD_NO;
  add(response, "ETag", entity->etag);
  add(response, "Cache-Control", entity->cache);
  if (not_modified) return send_response(e, 304, response); /* libmicrohttpd sends no body with it */
  add(response, "Content-Type", entity->type);
  add(response, "Accept-Ranges", "bytes");
  e->request->bytes = count;
  if (wanted == SERVE_WHOLE) return send_response(e, 200, response);
  snprintf(range, sizeof range, "bytes %llu-%llu/%llu", (unsigned long long)first, (unsigned long long)(first + count - 1),
           (unsigned long long)entity->n);
  add(response, "Content-Range", range);
  return send_response(e, 206, response);
}

/* --- requests -------------------------------------------------------------------------- */

/* Whom the request is for; local: our address as the client reached it, with port. */
static serve_host addressee(const exchange *e, const serve_target *target, char local[64], uint16_t *port) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(e->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info == NULL || !serve_local_address((int)info->connect_fd, local, port)) return SERVE_HOST_FOREIGN;
  const char *const names[] = {local, e->server->name};
  uint16_t scheme_port = e->server->options->certificate != NULL ? 443 : 80;
  header_values h = header(e, "Host");
  serve_host found = SERVE_HOST_BAD;
  if (h.lines == 1) found = serve_host_check(h.joined.bytes, h.joined.n, names, CLI_COUNT(names), *port, scheme_port);
  cli_text_free(&h.joined);
  if (found == SERVE_HOST_BAD || target->authority == NULL) return found;
  return serve_host_check(target->authority, target->n_authority, names, CLI_COUNT(names), *port, scheme_port);
}

static enum MHD_Result redirect(const exchange *e, const serve_target *target, const char *local, uint16_t port) {
  cli_text url = {0};
  cli_text_print(&url, "%s://%s:%u", e->server->options->certificate != NULL ? "https" : "http", local, port);
  cli_text_add(&url, target->rest, target->n_rest);
  enum MHD_Result result = say(e, 308, "Location", url.bytes);
  cli_text_free(&url);
  return result;
}

static enum MHD_Result answer(const exchange *e) {
  serve_target target;
  serve_entity entity;
  char name[SERVE_PATH_MAX], local[64];
  uint16_t port;
  const char *method = e->request->method;
  if (!serve_target_parse(e->request->target, strlen(e->request->target), &target)) return say(e, 400, NULL, NULL);
  serve_host host = addressee(e, &target, local, &port);
  if (host == SERVE_HOST_BAD) return say(e, 400, NULL, NULL);
  if (host == SERVE_HOST_FOREIGN) return say(e, 421, NULL, NULL);
  if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) return say(e, 405, "Allow", "GET, HEAD");
  if (has_body(e)) return say(e, 400, NULL, NULL);
  unsigned status = serve_path_decode(target.path, target.n_path, name);
  if (status == 400) return say(e, 400, NULL, NULL);
  if (host == SERVE_HOST_LOCALHOST) return redirect(e, &target, local, port);
  if (status == 200) status = serve_files_find(e->server->files, name, &entity);
  return status == 200 ? send_entity(e, &entity) : say(e, status, NULL, NULL);
}

/* --- libmicrohttpd's callbacks ------------------------------------------------------------- */

/* The first to be called for a request; what it returns becomes *context of the others. */
static void *on_target(void *user, const char *target, struct MHD_Connection *connection) {
  (void)user;
  (void)connection;
  size_t n = strlen(target) + 1;
  request *r = cli_alloc(1, sizeof *r);
  r->target = cli_alloc(n, 1);
  memcpy(r->target, target, n);
  return r;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *n_upload, void **context) {
  exchange e = {user, connection, *context};
  (void)url;
  (void)version;
  (void)upload;
  if (e.request == NULL) return MHD_NO;
  snprintf(e.request->method, sizeof e.request->method, "%s", method);
  bool plain = (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) && !has_body(&e);
  if (!plain || e.request->begun) return answer(&e);
  e.request->begun = true; /* libmicrohttpd wants the answer at the second call, when the request is read */
  *n_upload = 0;
  return MHD_YES;
}

static void on_completed(void *user, struct MHD_Connection *connection, void **context, enum MHD_RequestTerminationCode how) {
  const server *s = user;
  request *r = *context;
  (void)connection;
  if (r == NULL) return;
  if (s->options->verbose) {
    for (char *p = r->target; *p != 0; p++)
      if (*p < ' ' || *p > '~') *p = '?';
    fprintf(stderr, "%10.3f %u %s %.1000s %llu%s\n", (double)(slm2_clock_ns() - s->start_ns) / 1e9, r->status,
            r->method[0] != 0 ? r->method : "-", r->target, (unsigned long long)r->bytes,
            how == MHD_REQUEST_TERMINATED_COMPLETED_OK ? "" : " (broken off)");
  }
  free(r->target);
  free(r);
  *context = NULL;
}

/* Paths are decoded by serve_path_decode, once. */
static size_t keep_escapes(void *user, struct MHD_Connection *connection, char *text) {
  (void)user;
  (void)connection;
  return strlen(text);
}

static void on_message(void *user, const char *format, va_list args) {
  server *s = user;
  vsnprintf(s->message, sizeof s->message, format, args);
  size_t n = strcspn(s->message, "\r\n");
  s->message[n] = 0;
}

/* --- the server -------------------------------------------------------------------------------- */

static struct MHD_Daemon *start(server *s, int fd) {
  struct MHD_OptionItem tls[] = {
    {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)s->options->certificate},
    {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)s->options->key},
    {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
    {MHD_OPTION_END, 0, NULL},
  };
  bool secure = s->options->certificate != NULL;
  unsigned flags = MHD_USE_AUTO | MHD_USE_ERROR_LOG | (secure ? MHD_USE_TLS : 0u);
  return MHD_start_daemon(flags, 0, NULL, NULL, on_request, s,
                          MHD_OPTION_EXTERNAL_LOGGER, on_message, s,
                          MHD_OPTION_LISTEN_SOCKET, fd,
                          MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL,
                          MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
                          MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
                          MHD_OPTION_STRICT_FOR_CLIENT, -1, /* so that a missing Host reaches us, and gets our headers */
                          MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, /* slm2_platform_start ignores it; so files go by sendfile */
                          MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
                          MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
                          MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
                          MHD_OPTION_ARRAY, secure ? tls : &tls[CLI_COUNT(tls) - 1],
                          MHD_OPTION_END);
}

static int announce(const server *s, const serve_socket *socket) {
  cli_text t = {0};
  uint32_t models = serve_files_models(s->files);
  cli_text_print(&t, "serving %s://%s:%u/ with ", s->options->certificate != NULL ? "https" : "http", socket->address,
                 socket->port);
  if (models == 0) cli_text_puts(&t, "no model");
  else cli_text_print(&t, models == 1 ? "%u model" : "%u models", models);
  cli_text_puts(&t, "; Ctrl-C ends it\n");
  int code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

int serve_http(const serve_options *options, const serve_files *files, serve_socket *socket) {
  server s = {.options = options, .files = files, .name = socket->address, .start_ns = slm2_clock_ns()};
  if (options->certificate != NULL && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
    serve_socket_close(socket);
    return cli_complain(CLI_FAILED, "--cert", "this libmicrohttpd was built without TLS");
  }
  struct MHD_Daemon *daemon = start(&s, socket->fd);
  if (daemon == NULL) {
    serve_socket_close(socket);
    return cli_complain(CLI_FAILED, "serve", "libmicrohttpd does not start: %s",
                        s.message[0] != 0 ? s.message : "it gives no reason");
  }
  cli_catch_interrupts();
  int code = announce(&s, socket);
  while (code == CLI_OK && !cli_cancelled())
    if (MHD_run_wait(daemon, WAIT_MS) != MHD_YES && !cli_cancelled())
      code = cli_complain(CLI_FAILED, "serve", "libmicrohttpd gave up: %s", s.message);
  MHD_stop_daemon(daemon); /* closes the socket */
  return code;
}
