/* format/push_reader.c: the verifier: a whole file in pieces of any size. Every data byte is hashed into its 4 MiB
 * chunk and checked by its place in its section: finite norms, scales and frequencies, no weight of -128, zero padding.
 * A refused byte waits for the end of its chunk: when the hash differs too, the file is damaged, and that is said. */
#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "format/layout.h"
#include "kernel/weights.h"

typedef enum phase { LENGTH, HEADER, DATA, DONE, REFUSED } phase;

struct slm2_reader {
  phase phase;
  uint8_t first[8];
  uint8_t *buffer;        /* lent: the header */
  uint64_t capacity, file_bytes, position, n;
  slm2_header header;
  slm2_error refusal;     /* DATA: of this chunk's first bad byte, when its code is set. REFUSED: what every call repeats */
  slm2_sha256 hash;       /* of the chunk so far */
  uint32_t section_index;
  slm2_section section;   /* the one at `position` */
  uint32_t word;          /* F32 sections: the last four bytes, little-endian */
};

size_t slm2_reader_bytes(void) { return sizeof(slm2_reader); }

slm2_status slm2_reader_init(void *mem, size_t mem_bytes, uint8_t *header_buffer, size_t header_capacity, uint64_t file_bytes,
                             slm2_reader **out, slm2_error *error) {
  if (mem_bytes < sizeof(slm2_reader)) {
    return slm2_fail(error, SLM2_E_MEMORY, "slm2 reader", NULL, SLM2_NO_OFFSET, "the reader takes %u bytes, but %u are given",
                     (uint64_t)sizeof(slm2_reader), (uint64_t)mem_bytes);
  }
  if (file_bytes < 8) {
    return slm2_fail(error, SLM2_E_FORMAT, "slm2 header", NULL, 0, "not an slm2 file: it has only %u bytes", file_bytes);
  }
  slm2_reader *r = mem;
  memset(r, 0, sizeof *r);
  r->buffer = header_buffer;
  r->capacity = header_capacity;
  r->file_bytes = file_bytes;
  *out = r;
  return SLM2_OK;
}

const slm2_header *slm2_reader_header(const slm2_reader *r) { return r->header.header_bytes != 0 ? &r->header : NULL; }
uint64_t slm2_reader_position(const slm2_reader *r) { return r->position; }

/* --- the header ------------------------------------------------------------ */

/* Moves up to `missing` bytes of the piece to `to`. */
static void collect(slm2_reader *r, slm2_cursor *piece, uint8_t *to, uint64_t missing) {
  const uint8_t *from;
  size_t left = slm2_cursor_left(piece), n = left < missing ? left : (size_t)missing;
  if (n == 0 || !slm2_take(piece, n, &from)) return;
  memcpy(to, from, n);
  r->position += n;
}

static slm2_status read_length(slm2_reader *r, slm2_cursor *piece, slm2_error *error) {
  collect(r, piece, r->first + r->position, 8 - r->position);
  if (r->position < 8) return SLM2_OK;
  SLM2_TRY(slm2_header_length(r->first, r->file_bytes, &r->n, error));
  if (r->n > r->capacity) {
    return slm2_fail(error, SLM2_E_MEMORY, "slm2 reader", NULL, SLM2_NO_OFFSET,
                     "the header takes %u bytes, but the buffer has %u", r->n, r->capacity);
  }
  r->phase = HEADER;
  return SLM2_OK;
}

/* Makes `section` the one that holds byte `at` of the data: sections of no bytes are passed over. */
static void enter_section(slm2_reader *r, uint64_t at) {
  while (at >= r->section.offset + r->section.padded_bytes) {
    if (slm2_section_get(&r->header, ++r->section_index, &r->section) != SLM2_OK) return; /* the end of the data */
  }
}

static slm2_status read_header(slm2_reader *r, slm2_cursor *piece, slm2_error *error) {
  collect(r, piece, r->buffer + (r->position - 8), 8 + r->n - r->position);
  if (r->position < 8 + r->n) return SLM2_OK;
  SLM2_TRY(slm2_header_parse(r->buffer, (size_t)r->n, r->file_bytes, &r->header, error));
  SLM2_TRY(slm2_section_get(&r->header, 0, &r->section));
  enter_section(r, 0);
  slm2_sha256_init(&r->hash);
  r->phase = DATA;
  return SLM2_OK;
}

/* --- contents -------------------------------------------------------------- */

/* Part of the payload of the current section. */
typedef struct run {
  const uint8_t *bytes;
  size_t n;
  uint64_t at;      /* in the section */
  uint64_t file_at; /* in the file */
} run;

static void refuse_f32(slm2_reader *r, uint64_t index, uint64_t file_at) {
  const char *name = r->section.name;
  const char *demand = r->section_index == 1 ? "a frequency above 0 and at most 1" : "finite";
  (void)!slm2_fail(&r->refusal, SLM2_E_WEIGHT, "slm2 data", name, file_at, "%s[%u] is not %s (bits 0x%x at byte %u)", name,
                   index, demand, (uint64_t)r->word, file_at);
}

static void check_f32(slm2_reader *r, const run *part) {
  for (size_t i = 0; i < part->n; i++) {
    r->word = r->word >> 8 | (uint32_t)part->bytes[i] << 24;
    if ((part->at + i) % 4 != 3) continue;
    /* rope.inv_freq is 1 / theta^e with theta > 1, e >= 0: in (0, 1] as bits too, which excludes signs and NaN. */
    bool good = r->section_index == 1 ? r->word != 0 && r->word <= 0x3f800000 : (r->word & 0x7f800000) != 0x7f800000;
    if (!good) {
      refuse_f32(r, (part->at + i) / 4, part->file_at + i - 3);
      return;
    }
  }
}

/* Says which scale or weight the refused byte `at` of the payload belongs to: kernel/weights.h backwards. */
static void refuse_q8(slm2_reader *r, uint64_t at, uint64_t file_at) {
  const slm2_section *s = &r->section;
  uint64_t blocks = s->dims[1] / SLM2_BLOCK, row, block, k = at % SLM2_BLOCK_BYTES - 2;
  bool scale = at % SLM2_BLOCK_BYTES < 2;
  if (r->header.form == SLM2_FORM_ROWS) {
    row = at / SLM2_BLOCK_BYTES / blocks;
    block = at / SLM2_BLOCK_BYTES % blocks;
  } else {
    uint64_t panel = at / SLM2_PANEL_BYTES, inner = at % SLM2_PANEL_BYTES, weight = inner - 64;
    scale = inner < 64;
    row = panel / blocks * SLM2_PANEL_ROWS + (scale ? inner / 4 + 16 * (inner % 4 / 2) : weight % 128 / 4);
    block = panel % blocks;
    k = weight / 128 * 4 + weight % 4;
  }
  if (scale) {
    (void)!slm2_fail(&r->refusal, SLM2_E_WEIGHT, "slm2 data", s->name, file_at,
                     "%s: the scale of row %u, columns %u to %u is not finite (byte %u)", s->name, row, block * SLM2_BLOCK,
                     block * SLM2_BLOCK + 31, file_at);
    return;
  }
  (void)!slm2_fail(&r->refusal, SLM2_E_WEIGHT, "slm2 data", s->name, file_at,
                   "%s: the weight of row %u, column %u is -128 (byte %u)", s->name, row, block * SLM2_BLOCK + k, file_at);
}

/* Index of the first high byte of an f16 that is infinite or NaN; n when there is none. first: place of bytes[0]. */
static size_t bad_scale(const uint8_t *bytes, size_t n, uint64_t first) {
  size_t i = 0;
  while (i < n && ((first + i) % 2 == 0 || (bytes[i] & 0x7c) != 0x7c)) i++;
  return i;
}

/* Index of the first -128; n when there is none. */
static size_t bad_weight(const uint8_t *bytes, size_t n) {
  unsigned any = 0;
  for (size_t i = 0; i < n; i++) any |= bytes[i] == 0x80;
  if (any == 0) return n;
  size_t at = 0;
  while (bytes[at] != 0x80) at++;
  return at;
}

/* Both forms are a period of scales followed by weights. */
static void check_q8(slm2_reader *r, const run *part) {
  bool rows = r->header.form == SLM2_FORM_ROWS;
  uint64_t period = rows ? SLM2_BLOCK_BYTES : SLM2_PANEL_BYTES, scales = rows ? 2 : 64;
  for (size_t i = 0; i < part->n;) {
    uint64_t inner = (part->at + i) % period, left = inner < scales ? scales - inner : period - inner;
    size_t n = part->n - i < left ? part->n - i : (size_t)left;
    size_t bad = inner < scales ? bad_scale(part->bytes + i, n, inner) : bad_weight(part->bytes + i, n);
    if (bad < n) {
      refuse_q8(r, part->at + i + bad, part->file_at + i + bad);
      return;
    }
    i += n;
  }
}

static void check_padding(slm2_reader *r, const run *part) {
  size_t i = 0;
  while (i < part->n && part->bytes[i] == 0) i++;
  if (i == part->n) return;
  const char *name = r->section.name;
  uint64_t at = part->file_at + i;
  (void)!slm2_fail(&r->refusal, SLM2_E_FORMAT, "slm2 data", name, at, "%s: padding byte %u is 0x%x, not zero", name, at,
                   (uint64_t)part->bytes[i]);
}

/* Checks bytes[0..n) at `at` of the data, section by section, up to the first refusal. */
static void check_contents(slm2_reader *r, const uint8_t *bytes, size_t n, uint64_t at) {
  while (n > 0 && r->refusal.code == SLM2_OK) {
    const slm2_section *s = &r->section;
    uint64_t within = at - s->offset, left = within < s->bytes ? s->bytes - within : s->padded_bytes - within;
    size_t take = n < left ? n : (size_t)left;
    run part = {bytes, take, within, 8 + r->n + at};
    if (within >= s->bytes) check_padding(r, &part);
    else if (s->dtype == SLM2_DTYPE_F32) check_f32(r, &part);
    else if (s->dtype == SLM2_DTYPE_Q8) check_q8(r, &part);
    bytes += take;
    n -= take;
    at += take;
    enter_section(r, at);
  }
}

/* --- chunks ---------------------------------------------------------------- */

static slm2_status finish_chunk(slm2_reader *r, uint64_t i, slm2_error *error) {
  uint8_t got[32], stated[32];
  slm2_sha256_final(&r->hash, got);
  SLM2_TRY(slm2_header_chunk_hash(r->buffer, (size_t)r->n, &r->header, i, stated));
  if (memcmp(got, stated, 32) != 0) {
    char got_hex[17], stated_hex[17];
    uint64_t begin = 8 + r->n + i * SLM2_CHUNK_BYTES;
    slm2_hex(got, 8, got_hex);
    slm2_hex(stated, 8, stated_hex);
    return slm2_fail(error, SLM2_E_INTEGRITY, "slm2 data", NULL, begin,
                     "the file is damaged: chunk %u (bytes %u to %u) has SHA-256 %s..., but the header states %s...", i, begin,
                     r->position - 1, got_hex, stated_hex);
  }
  if (r->refusal.code != SLM2_OK) {
    *error = r->refusal;
    return error->code;
  }
  slm2_sha256_init(&r->hash);
  if (r->position == 8 + r->n + r->header.data_bytes) r->phase = DONE;
  return SLM2_OK;
}

static slm2_status read_data(slm2_reader *r, slm2_cursor *piece, slm2_error *error) {
  uint64_t at = r->position - 8 - r->n, chunk = at / SLM2_CHUNK_BYTES, end = (chunk + 1) * SLM2_CHUNK_BYTES;
  if (end > r->header.data_bytes) end = r->header.data_bytes;
  const uint8_t *bytes;
  size_t left = slm2_cursor_left(piece), n = left < end - at ? left : (size_t)(end - at);
  if (!slm2_take(piece, n, &bytes)) return SLM2_E_INTERNAL_INVARIANT;
  slm2_sha256_update(&r->hash, bytes, n);
  check_contents(r, bytes, n, at);
  r->position += n;
  return at + n == end ? finish_chunk(r, chunk, error) : SLM2_OK;
}

/* --- the whole ------------------------------------------------------------- */

static slm2_status step(slm2_reader *r, slm2_cursor *piece, slm2_error *error) {
  switch (r->phase) {
  case LENGTH: return read_length(r, piece, error);
  case HEADER: return read_header(r, piece, error);
  case DATA: return read_data(r, piece, error);
  default:
    return slm2_fail(error, SLM2_E_FORMAT, "slm2 data", NULL, r->position,
                     "%u or more bytes follow the end of the data at byte %u", (uint64_t)slm2_cursor_left(piece), r->position);
  }
}

slm2_status slm2_reader_push(slm2_reader *r, const uint8_t *bytes, size_t n, slm2_error *error) {
  slm2_cursor piece = slm2_cursor_of(bytes, n);
  slm2_status status = r->phase == REFUSED ? r->refusal.code : SLM2_OK;
  while (status == SLM2_OK && slm2_cursor_left(&piece) > 0) {
    slm2_error refusal;
    status = step(r, &piece, &refusal);
    if (status == SLM2_OK) continue;
    r->refusal = refusal;
    r->phase = REFUSED;
  }
  if (status != SLM2_OK) {
    if (error != NULL) *error = r->refusal;
    return status;
  }
  return r->phase == DONE ? SLM2_OK : SLM2_NEED_MORE;
}
