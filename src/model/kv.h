/* model/kv.h: keys and values of every position computed so far, in one flat block [K9].
 *
 *   keys   [layer][kv head][position][dim]
 *   values [layer][kv head][position][dim]
 *
 * so that one head's keys are contiguous over the positions it attends to. Positions from the session's length on hold
 * whatever was there: nothing reads them, nothing clears them [R43, R44].
 */
#ifndef SLM2_MODEL_KV_H
#define SLM2_MODEL_KV_H

#include "kernel/kernel.h"
#include "slm2/model.h"

typedef struct slm2_kv_cache {
  uint8_t *keys, *values;
  uint32_t heads, head_dim, context;
  bool f16;
} slm2_kv_cache;

/* Bytes of the block: 2 * layers * kv_heads * head_dim * context * (4 or 2). c and context are within their limits,
 * which keep the product below 2^48. */
uint64_t slm2_kv_bytes(const slm2_config *c, slm2_kv_type type, uint32_t context);
slm2_kv_cache slm2_kv_place(uint8_t *block, const slm2_config *c, slm2_kv_type type, uint32_t context);

/* Byte offset of (layer, head, position) within keys or within values. */
static inline size_t slm2_kv_at(const slm2_kv_cache *kv, uint32_t layer, uint32_t head, uint32_t position) {
  size_t row = ((size_t)layer * kv->heads + head) * kv->context + position;
  return row * kv->head_dim * (kv->f16 ? sizeof(uint16_t) : sizeof(float));
}

#endif
