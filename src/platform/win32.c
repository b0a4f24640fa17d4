/* platform/win32.c: platform.h for Windows (Windows 10 and later). The twin of posix.c: same contract, same messages.
 * Paths arrive as UTF-8 and are widened here; every offset is 64-bit; the replacing rename is MoveFileExW.
 */
#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0A00
#define _CRT_RAND_S /* rand_s: the system's random generator */

#include <stdlib.h>

#include <fcntl.h>
#include <io.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>
#include <shellapi.h>

#include "platform/platform.h"

#include "base/error.h"

#define IO_PIECE ((size_t)1 << 30) /* ReadFile and WriteFile take a DWORD */

static slm2_status io_fail(slm2_error *error, const char *operation, const char *path, DWORD code) {
  char text[160];
  DWORD n = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, code,
                           MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US), text, sizeof text, NULL);
  while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == '.')) n--;
  text[n < sizeof text ? n : sizeof text - 1] = 0;
  return slm2_fail(error, code == ERROR_NOT_ENOUGH_MEMORY ? SLM2_E_MEMORY : SLM2_E_IO, operation, path, SLM2_NO_OFFSET,
                   n > 0 ? "%s (Windows error %u)" : "%sWindows error %u", text, (uint64_t)code);
}

/* UTF-8 to a malloc'ed wide string; NULL when it is not UTF-8 or memory is out. */
static wchar_t *widen(const char *path) {
  int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
  if (n <= 0) return NULL;
  wchar_t *wide = malloc((size_t)n * sizeof *wide);
  if (wide != NULL) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, n);
  return wide;
}

static DWORD attributes(const char *path) {
  wchar_t *wide = widen(path);
  if (wide == NULL) return INVALID_FILE_ATTRIBUTES;
  DWORD a = GetFileAttributesW(wide);
  free(wide);
  return a;
}

static void set_offset(OVERLAPPED *at, uint64_t offset) {
  memset(at, 0, sizeof *at);
  at->Offset = (DWORD)(offset & 0xffffffffu);
  at->OffsetHigh = (DWORD)(offset >> 32);
}

/* --- reading -------------------------------------------------------------- */

static slm2_status open_regular(const char *path, HANDLE *out, uint64_t *n_bytes, slm2_error *error) {
  if (slm2_is_directory(path)) return slm2_fail(error, SLM2_E_IO, "open", path, SLM2_NO_OFFSET, "is a folder, not a file");
  wchar_t *wide = widen(path);
  if (wide == NULL) return io_fail(error, "open", path, ERROR_INVALID_NAME);
  HANDLE h =
      CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
  DWORD code = GetLastError();
  free(wide);
  if (h == INVALID_HANDLE_VALUE) return io_fail(error, "open", path, code);
  if (GetFileType(h) != FILE_TYPE_DISK) {
    CloseHandle(h);
    return slm2_fail(error, SLM2_E_IO, "open", path, SLM2_NO_OFFSET, "is not a regular file");
  }
  LARGE_INTEGER size;
  if (!GetFileSizeEx(h, &size)) {
    code = GetLastError();
    CloseHandle(h);
    return io_fail(error, "open", path, code);
  }
  *out = h;
  *n_bytes = (uint64_t)size.QuadPart;
  return SLM2_OK;
}

slm2_status slm2_map(const char *path, slm2_mapping *out, slm2_error *error) {
  HANDLE h;
  uint64_t n;
  SLM2_TRY(open_regular(path, &h, &n, error));
  void *p = NULL;
  DWORD code = 0;
  if (n > SIZE_MAX) code = ERROR_FILE_TOO_LARGE;
  else if (n > 0) {
    HANDLE section = CreateFileMappingW(h, NULL, PAGE_READONLY, 0, 0, NULL);
    if (section != NULL) p = MapViewOfFile(section, FILE_MAP_READ, 0, 0, (size_t)n);
    if (p == NULL) code = GetLastError();
    if (section != NULL) CloseHandle(section);
  }
  CloseHandle(h);
  if (code != 0) return io_fail(error, "map", path, code);
  *out = (slm2_mapping){p, n, NULL};
  return SLM2_OK;
}

void slm2_unmap(slm2_mapping *mapping) {
  if (mapping->bytes != NULL) UnmapViewOfFile(mapping->bytes);
  *mapping = (slm2_mapping){NULL, 0, NULL};
}

struct slm2_file {
  HANDLE handle;
  char path[];
};

slm2_status slm2_file_open(const char *path, slm2_file **out, uint64_t *n_bytes, slm2_error *error) {
  HANDLE h;
  uint64_t n;
  SLM2_TRY(open_regular(path, &h, &n, error));
  size_t length = strlen(path) + 1;
  slm2_file *file = malloc(sizeof *file + length);
  if (file == NULL) {
    CloseHandle(h);
    return io_fail(error, "open", path, ERROR_NOT_ENOUGH_MEMORY);
  }
  file->handle = h;
  memcpy(file->path, path, length);
  *out = file;
  *n_bytes = n;
  return SLM2_OK;
}

slm2_status slm2_file_read(slm2_file *file, uint64_t offset, void *buffer, size_t n, slm2_error *error) {
  if (offset > INT64_MAX || n > (uint64_t)INT64_MAX - offset)
    return slm2_fail(error, SLM2_E_ARGUMENT, "read", file->path, offset, "%u bytes reach beyond 64-bit file offsets",
                     (uint64_t)n);
  uint8_t *p = buffer;
  while (n > 0) {
    OVERLAPPED at;
    set_offset(&at, offset);
    DWORD got = 0;
    BOOL ok = ReadFile(file->handle, p, (DWORD)(n < IO_PIECE ? n : IO_PIECE), &got, &at);
    if (!ok && GetLastError() != ERROR_HANDLE_EOF) return io_fail(error, "read", file->path, GetLastError());
    if (got == 0) return slm2_fail(error, SLM2_E_IO, "read", file->path, offset, "the file ends %u bytes too early", (uint64_t)n);
    p += got;
    offset += got;
    n -= got;
  }
  return SLM2_OK;
}

void slm2_file_close(slm2_file *file) {
  if (file == NULL) return;
  CloseHandle(file->handle);
  free(file);
}

/* --- Ctrl-C and unfinished outputs ---------------------------------------- */

struct slm2_output {
  slm2_output *next; /* in the list of unfinished outputs */
  HANDLE handle;
  char *path;
  wchar_t *wide;
  wchar_t *temporary;
};

struct slm2_folder {
  slm2_folder *next; /* in the list of unfinished folders */
  char *path, *temporary;
  wchar_t *wide, *wide_temporary;
  wchar_t *files[SLM2_FOLDER_FILES]; /* paths in the temporary */
  size_t n_files;
};

/* The console handler runs in a thread of its own: the lists are guarded. */
static SRWLOCK unfinished_lock = SRWLOCK_INIT;
static slm2_output *unfinished;
static slm2_folder *unfinished_folders;
static _Atomic(uintptr_t) interrupt_handler;

static void remove_folder(slm2_folder *f) {
  for (size_t i = 0; i < f->n_files; i++) DeleteFileW(f->files[i]);
  RemoveDirectoryW(f->wide_temporary);
}

/* The lock is kept: the process is ending, and no output may be committed or begun any more. */
static void remove_unfinished(void) {
  AcquireSRWLockExclusive(&unfinished_lock);
  for (slm2_output *o = unfinished; o != NULL; o = o->next) {
    CloseHandle(o->handle);
    DeleteFileW(o->temporary);
  }
  unfinished = NULL;
  for (slm2_folder *f = unfinished_folders; f != NULL; f = f->next) remove_folder(f);
  unfinished_folders = NULL;
}

static BOOL WINAPI on_console(DWORD event) {
  uintptr_t handler = atomic_load(&interrupt_handler);
  if (event == CTRL_C_EVENT && handler != 0) {
    ((void (*)(void))handler)();
    return TRUE;
  }
  remove_unfinished();
  return FALSE;
}

static void install_handler(void) {
  static atomic_flag installed = ATOMIC_FLAG_INIT;
  if (!atomic_flag_test_and_set(&installed)) SetConsoleCtrlHandler(on_console, TRUE);
}

void slm2_on_interrupt(void (*handler)(void)) {
  atomic_store(&interrupt_handler, (uintptr_t)handler);
  if (handler != NULL) install_handler();
}

/* --- output --------------------------------------------------------------- */

/* A neighbour of the wide path: its folder, then ".slm2-<16 hex digits>.tmp". */
static wchar_t *temporary_name(const wchar_t *wide, uint64_t random) {
  size_t folder = 0;
  for (size_t i = 0; wide[i] != 0; i++)
    if (wide[i] == L'/' || wide[i] == L'\\' || wide[i] == L':') folder = i + 1;
  wchar_t *name = malloc((folder + 32) * sizeof *name);
  if (name == NULL) return NULL;
  memcpy(name, wide, folder * sizeof *name);
  memcpy(name + folder, L".slm2-", 6 * sizeof *name);
  for (int i = 0; i < 16; i++) name[folder + 6 + (size_t)i] = L"0123456789abcdef"[random >> (60 - 4 * i) & 15];
  memcpy(name + folder + 22, L".tmp", 5 * sizeof *name);
  return name;
}

static void free_output(slm2_output *o) {
  if (o == NULL) return;
  free(o->path);
  free(o->wide);
  free(o->temporary);
  free(o);
}

static slm2_status open_temporary(slm2_output *o, slm2_error *error) {
  for (int attempt = 0; attempt < 16; attempt++) {
    uint64_t random;
    SLM2_TRY(slm2_random_seed(&random, error));
    free(o->temporary);
    o->temporary = temporary_name(o->wide, random);
    if (o->temporary == NULL) return io_fail(error, "create", o->path, ERROR_NOT_ENOUGH_MEMORY);
    AcquireSRWLockExclusive(&unfinished_lock);
    o->handle = CreateFileW(o->temporary, GENERIC_WRITE, FILE_SHARE_DELETE, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    DWORD code = GetLastError();
    if (o->handle != INVALID_HANDLE_VALUE) {
      o->next = unfinished;
      unfinished = o;
    }
    ReleaseSRWLockExclusive(&unfinished_lock);
    if (o->handle != INVALID_HANDLE_VALUE) return SLM2_OK;
    if (code != ERROR_FILE_EXISTS) return io_fail(error, "create", o->path, code);
  }
  return slm2_fail(error, SLM2_E_IO, "create", o->path, SLM2_NO_OFFSET, "16 temporary names in its folder are all taken");
}

static void register_cleaning(void) {
  static bool registered;
  install_handler();
  if (!registered) registered = atexit(remove_unfinished) == 0;
}

slm2_status slm2_output_create(const char *path, slm2_output **out, slm2_error *error) {
  if (path[0] == 0) return io_fail(error, "create", "output", ERROR_PATH_NOT_FOUND);
  if (slm2_is_directory(path)) return slm2_fail(error, SLM2_E_IO, "create", path, SLM2_NO_OFFSET, "is a folder, not a file");
  register_cleaning();
  slm2_output *o = calloc(1, sizeof *o);
  if (o == NULL) return io_fail(error, "create", path, ERROR_NOT_ENOUGH_MEMORY);
  o->path = _strdup(path);
  o->wide = widen(path);
  slm2_status status =
      o->path == NULL || o->wide == NULL ? io_fail(error, "create", path, ERROR_INVALID_NAME) : open_temporary(o, error);
  if (status != SLM2_OK) {
    free_output(o);
    return status;
  }
  *out = o;
  return SLM2_OK;
}

slm2_status slm2_output_write(slm2_output *o, uint64_t offset, const void *bytes, size_t n, slm2_error *error) {
  if (offset > INT64_MAX || n > (uint64_t)INT64_MAX - offset)
    return slm2_fail(error, SLM2_E_ARGUMENT, "write", o->path, offset, "%u bytes reach beyond 64-bit file offsets", (uint64_t)n);
  const uint8_t *p = bytes;
  while (n > 0) {
    OVERLAPPED at;
    set_offset(&at, offset);
    DWORD put = 0;
    if (!WriteFile(o->handle, p, (DWORD)(n < IO_PIECE ? n : IO_PIECE), &put, &at))
      return io_fail(error, "write", o->path, GetLastError());
    if (put == 0) return io_fail(error, "write", o->path, ERROR_DISK_FULL);
    p += put;
    offset += put;
    n -= put;
  }
  return SLM2_OK;
}

/* Closes the temporary, renames or removes it, and takes o off the list. Returns 0 or the Windows error. */
static DWORD settle(slm2_output *o, bool keep) {
  AcquireSRWLockExclusive(&unfinished_lock);
  DWORD code = 0;
  if (!CloseHandle(o->handle)) code = GetLastError();
  if (keep && code == 0 && !MoveFileExW(o->temporary, o->wide, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
    code = GetLastError();
  if (!keep || code != 0) DeleteFileW(o->temporary);
  slm2_output **at = &unfinished;
  while (*at != o) at = &(*at)->next;
  *at = o->next;
  ReleaseSRWLockExclusive(&unfinished_lock);
  return code;
}

slm2_status slm2_output_commit(slm2_output *o, slm2_error *error) {
  DWORD code = FlushFileBuffers(o->handle) ? 0 : GetLastError();
  DWORD settled = settle(o, code == 0);
  if (code == 0) code = settled;
  slm2_status status = code == 0 ? SLM2_OK : io_fail(error, "commit", o->path, code);
  free_output(o);
  return status;
}

void slm2_output_abandon(slm2_output *o) {
  if (o == NULL) return;
  (void)settle(o, false);
  free_output(o);
}

/* --- folders -------------------------------------------------------------- */

static void free_folder(slm2_folder *f) {
  if (f == NULL) return;
  for (size_t i = 0; i < f->n_files; i++) free(f->files[i]);
  free(f->path);
  free(f->temporary);
  free(f->wide);
  free(f->wide_temporary);
  free(f);
}

/* A wide string to malloc'ed UTF-8; NULL when memory is out. */
static char *narrow(const wchar_t *wide) {
  int n = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
  char *text = n <= 0 ? NULL : malloc((size_t)n);
  if (text != NULL) WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, n, NULL, NULL);
  return text;
}

static slm2_status make_temporary(slm2_folder *f, slm2_error *error) {
  for (int attempt = 0; attempt < 16; attempt++) {
    uint64_t random;
    SLM2_TRY(slm2_random_seed(&random, error));
    free(f->wide_temporary);
    free(f->temporary);
    f->wide_temporary = temporary_name(f->wide, random);
    f->temporary = f->wide_temporary == NULL ? NULL : narrow(f->wide_temporary);
    if (f->temporary == NULL) return io_fail(error, "create", f->path, ERROR_NOT_ENOUGH_MEMORY);
    AcquireSRWLockExclusive(&unfinished_lock);
    DWORD code = CreateDirectoryW(f->wide_temporary, NULL) ? 0 : GetLastError();
    if (code == 0) {
      f->next = unfinished_folders;
      unfinished_folders = f;
    }
    ReleaseSRWLockExclusive(&unfinished_lock);
    if (code == 0) return SLM2_OK;
    if (code != ERROR_ALREADY_EXISTS) return io_fail(error, "create", f->path, code);
  }
  return slm2_fail(error, SLM2_E_IO, "create", f->path, SLM2_NO_OFFSET, "16 temporary names in its folder are all taken");
}

slm2_status slm2_folder_create(const char *path, slm2_folder **out, slm2_error *error) {
  size_t n = strlen(path);
  while (n > 1 && (path[n - 1] == '/' || path[n - 1] == '\\')) n--;
  if (n == 0) return io_fail(error, "create", "folder", ERROR_PATH_NOT_FOUND);
  slm2_folder *f = calloc(1, sizeof *f);
  if (f != NULL) f->path = _strdup(path);
  if (f != NULL && f->path != NULL) f->path[n] = 0;
  slm2_status status = SLM2_OK;
  if (f == NULL || f->path == NULL) status = io_fail(error, "create", path, ERROR_NOT_ENOUGH_MEMORY);
  else if (attributes(f->path) != INVALID_FILE_ATTRIBUTES)
    status = slm2_fail(error, SLM2_E_IO, "create", path, SLM2_NO_OFFSET, "exists already; a folder is only made new");
  else if ((f->wide = widen(f->path)) == NULL) status = io_fail(error, "create", path, ERROR_INVALID_NAME);
  if (status == SLM2_OK) {
    register_cleaning();
    status = make_temporary(f, error);
  }
  if (status != SLM2_OK) {
    free_folder(f);
    return status;
  }
  *out = f;
  return SLM2_OK;
}

slm2_status slm2_folder_file(slm2_folder *f, const char *name, slm2_output **out, slm2_error *error) {
  size_t n = strlen(f->temporary), n_name = strlen(name);
  if (f->n_files == SLM2_FOLDER_FILES)
    return slm2_fail(error, SLM2_E_ARGUMENT, "create", name, SLM2_NO_OFFSET, "more than %u files", (uint64_t)SLM2_FOLDER_FILES);
  char *path = malloc(n + n_name + 2);
  if (path == NULL) return io_fail(error, "create", name, ERROR_NOT_ENOUGH_MEMORY);
  memcpy(path, f->temporary, n);
  path[n] = '\\';
  memcpy(path + n + 1, name, n_name + 1);
  wchar_t *wide = widen(path);
  slm2_status status = SLM2_OK;
  if (wide == NULL) status = io_fail(error, "create", name, ERROR_INVALID_NAME);
  if (status == SLM2_OK) {
    AcquireSRWLockExclusive(&unfinished_lock);
    f->files[f->n_files++] = wide;
    ReleaseSRWLockExclusive(&unfinished_lock);
    status = slm2_output_create(path, out, error);
  }
  free(path);
  return status;
}

/* Takes f off the list and renames its temporary or removes it. Returns 0 or the Windows error. */
static DWORD settle_folder(slm2_folder *f, bool keep) {
  AcquireSRWLockExclusive(&unfinished_lock);
  DWORD code = keep && !MoveFileExW(f->wide_temporary, f->wide, MOVEFILE_WRITE_THROUGH) ? GetLastError() : 0;
  if (!keep || code != 0) remove_folder(f);
  slm2_folder **at = &unfinished_folders;
  while (*at != f) at = &(*at)->next;
  *at = f->next;
  ReleaseSRWLockExclusive(&unfinished_lock);
  return code;
}

slm2_status slm2_folder_commit(slm2_folder *f, slm2_error *error) {
  DWORD code = settle_folder(f, true);
  slm2_status status = code == 0 ? SLM2_OK : io_fail(error, "commit", f->path, code);
  free_folder(f);
  return status;
}

void slm2_folder_abandon(slm2_folder *f) {
  if (f == NULL) return;
  (void)settle_folder(f, false);
  free_folder(f);
}

/* --- names ---------------------------------------------------------------- */

bool slm2_is_directory(const char *path) {
  DWORD a = attributes(path);
  return a != INVALID_FILE_ATTRIBUTES && (a & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

bool slm2_file_exists(const char *path) {
  DWORD a = attributes(path);
  return a != INVALID_FILE_ATTRIBUTES && (a & FILE_ATTRIBUTE_DIRECTORY) == 0;
}

/* The path of an existing file or folder with every link resolved; malloc'ed. */
static wchar_t *resolve(const char *path) {
  wchar_t *wide = widen(path);
  if (wide == NULL) return NULL;
  HANDLE h = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                         FILE_FLAG_BACKUP_SEMANTICS, NULL);
  free(wide);
  if (h == INVALID_HANDLE_VALUE) return NULL;
  DWORD n = GetFinalPathNameByHandleW(h, NULL, 0, FILE_NAME_NORMALIZED);
  wchar_t *real = n == 0 ? NULL : malloc(((size_t)n + 1) * sizeof *real);
  if (real != NULL && GetFinalPathNameByHandleW(h, real, n + 1, FILE_NAME_NORMALIZED) == 0) {
    free(real);
    real = NULL;
  }
  CloseHandle(h);
  return real;
}

bool slm2_is_inside(const char *dir, const char *name) {
  if (name[0] == 0 || strpbrk(name, "/\\:") != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return false;
  size_t n_dir = strlen(dir), n_name = strlen(name);
  char *joined = malloc(n_dir + n_name + 2);
  if (joined == NULL) return false;
  memcpy(joined, dir, n_dir);
  joined[n_dir] = '/';
  memcpy(joined + n_dir + 1, name, n_name + 1);
  wchar_t *root = resolve(dir), *real = resolve(joined);
  bool inside = false;
  if (root != NULL && real != NULL) {
    size_t n = wcslen(root);
    if (n > 0 && root[n - 1] == L'\\') n--; /* the root of a drive */
    inside = wcsncmp(real, root, n) == 0 && real[n] == L'\\' && wcschr(real + n + 1, L'\\') == NULL;
  }
  free(root);
  free(real);
  free(joined);
  return inside;
}

bool slm2_same_file(const char *a, const char *b) {
  wchar_t *x = resolve(a), *y = resolve(b);
  bool same = x != NULL && y != NULL && wcscmp(x, y) == 0;
  free(x);
  free(y);
  return same;
}

/* --- memory, time, randomness, terminal ----------------------------------- */

slm2_status slm2_memory_reserve(uint64_t bytes, void **out, slm2_error *error) {
  if (bytes == 0 || bytes > SIZE_MAX)
    return slm2_fail(error, bytes == 0 ? SLM2_E_ARGUMENT : SLM2_E_MEMORY, "reserve", "memory", SLM2_NO_OFFSET,
                     "%u bytes cannot be addressed", bytes);
  void *p = VirtualAlloc(NULL, (size_t)bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (p == NULL)
    return slm2_fail(error, SLM2_E_MEMORY, "reserve", "memory", SLM2_NO_OFFSET, "the system refuses %u bytes: Windows error %u",
                     bytes, (uint64_t)GetLastError());
  *out = p;
  return SLM2_OK;
}

void slm2_memory_release(void *mem, uint64_t bytes) {
  (void)bytes;
  if (mem != NULL) VirtualFree(mem, 0, MEM_RELEASE);
}

uint64_t slm2_clock_ns(void) {
  LARGE_INTEGER ticks, per_second;
  QueryPerformanceFrequency(&per_second);
  QueryPerformanceCounter(&ticks);
  uint64_t f = (uint64_t)per_second.QuadPart, t = (uint64_t)ticks.QuadPart;
  return t / f * 1000000000u + t % f * 1000000000u / f;
}

slm2_status slm2_random_seed(uint64_t *seed, slm2_error *error) {
  unsigned low, high;
  if (rand_s(&low) != 0 || rand_s(&high) != 0) return io_fail(error, "random seed", "rand_s", ERROR_GEN_FAILURE);
  *seed = (uint64_t)high << 32 | low;
  return SLM2_OK;
}

bool slm2_is_terminal(int fd) { return _isatty(fd) != 0; }

/* Standard streams carry bytes, the console shows UTF-8 and understands escape codes, and argv becomes UTF-8.
 * When memory is out, argv stays as the C library made it. */
void slm2_platform_start(int *argc, char ***argv) {
  _setmode(0, _O_BINARY);
  _setmode(1, _O_BINARY);
  SetConsoleCP(CP_UTF8);
  SetConsoleOutputCP(CP_UTF8);
  DWORD mode;
  HANDLE console = GetStdHandle(STD_OUTPUT_HANDLE);
  if (GetConsoleMode(console, &mode)) SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  int n = 0;
  wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
  if (wide == NULL) return;
  char **utf8 = calloc((size_t)n + 1, sizeof *utf8);
  bool complete = utf8 != NULL;
  for (int i = 0; complete && i < n; i++) {
    int bytes = WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, NULL, 0, NULL, NULL);
    utf8[i] = malloc((size_t)bytes + 1);
    complete = utf8[i] != NULL && WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, utf8[i], bytes, NULL, NULL) > 0;
  }
  LocalFree(wide);
  if (!complete) return;
  *argc = n;
  *argv = utf8;
}
