/* model/kv.c: size and layout of the KV cache. */
#include "model/kv.h"

uint64_t slm2_kv_bytes(const slm2_config *c, slm2_kv_type type, uint32_t context) {
  uint64_t values = (uint64_t)c->layers * c->kv_heads * c->head_dim * context;
  return 2 * values * (type == SLM2_KV_F16 ? sizeof(uint16_t) : sizeof(float));
}

slm2_kv_cache slm2_kv_place(uint8_t *block, const slm2_config *c, slm2_kv_type type, uint32_t context) {
  return (slm2_kv_cache){
      .keys = block,
      .values = block + (size_t)(slm2_kv_bytes(c, type, context) / 2),
      .heads = c->kv_heads,
      .head_dim = c->head_dim,
      .context = context,
      .f16 = type == SLM2_KV_F16,
  };
}
