/* convert/gguf_types.c: the types of values and tensors in GGUF. Numbers and block sizes are ggml's (docs/gguf.md and
 * ggml.h); numbers of removed types are no types. */
#include "convert/gguf.h"

static const struct {
  const char *name;
  uint32_t bytes;
} types[] = {
    [SLM2_GGUF_U8] = {"u8", 1},         [SLM2_GGUF_I8] = {"i8", 1},
    [SLM2_GGUF_U16] = {"u16", 2},       [SLM2_GGUF_I16] = {"i16", 2},
    [SLM2_GGUF_U32] = {"u32", 4},       [SLM2_GGUF_I32] = {"i32", 4},
    [SLM2_GGUF_F32] = {"f32", 4},       [SLM2_GGUF_BOOL] = {"bool", 1},
    [SLM2_GGUF_STRING] = {"string", 0}, [SLM2_GGUF_ARRAY] = {"array", 0},
    [SLM2_GGUF_U64] = {"u64", 8},       [SLM2_GGUF_I64] = {"i64", 8},
    [SLM2_GGUF_F64] = {"f64", 8},
};
#define N_TYPES (sizeof types / sizeof types[0])

const char *slm2_gguf_type_name(uint32_t type) { return type < N_TYPES ? types[type].name : "unknown"; }
uint32_t slm2_gguf_type_bytes(uint32_t type) { return type < N_TYPES ? types[type].bytes : 0; }

static const struct {
  const char *name;
  uint32_t elements, bytes;
} ggml[] = {
    [0] = {"F32", 1, 4},          [1] = {"F16", 1, 2},          [2] = {"Q4_0", 32, 18},      [3] = {"Q4_1", 32, 20},
    [6] = {"Q5_0", 32, 22},       [7] = {"Q5_1", 32, 24},       [8] = {"Q8_0", 32, 34},      [9] = {"Q8_1", 32, 36},
    [10] = {"Q2_K", 256, 84},     [11] = {"Q3_K", 256, 110},    [12] = {"Q4_K", 256, 144},   [13] = {"Q5_K", 256, 176},
    [14] = {"Q6_K", 256, 210},    [15] = {"Q8_K", 256, 292},    [16] = {"IQ2_XXS", 256, 66}, [17] = {"IQ2_XS", 256, 74},
    [18] = {"IQ3_XXS", 256, 98},  [19] = {"IQ1_S", 256, 50},    [20] = {"IQ4_NL", 32, 18},   [21] = {"IQ3_S", 256, 110},
    [22] = {"IQ2_S", 256, 82},    [23] = {"IQ4_XS", 256, 136},  [24] = {"I8", 1, 1},         [25] = {"I16", 1, 2},
    [26] = {"I32", 1, 4},         [27] = {"I64", 1, 8},         [28] = {"F64", 1, 8},        [29] = {"IQ1_M", 256, 56},
    [30] = {"BF16", 1, 2},        [34] = {"TQ1_0", 256, 54},    [35] = {"TQ2_0", 256, 66},   [39] = {"MXFP4", 32, 17},
    [40] = {"NVFP4", 64, 36},     [41] = {"Q1_0", 128, 18},
};
#define N_GGML (sizeof ggml / sizeof ggml[0])

const char *slm2_ggml_name(uint32_t type) { return type < N_GGML ? ggml[type].name : NULL; }

bool slm2_ggml_block(uint32_t type, uint32_t *elements, uint32_t *bytes) {
  if (slm2_ggml_name(type) == NULL) return false;
  *elements = ggml[type].elements;
  *bytes = ggml[type].bytes;
  return true;
}
