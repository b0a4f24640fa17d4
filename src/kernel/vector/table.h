/* kernel/vector/table.h: a backend from the vector sources, under the names BACKEND and BACKEND_NAME. Slots without a twin,
 * because none was measured to gain, are the oracle's. */
#ifndef SLM2_KERNEL_VECTOR_TABLE_H
#define SLM2_KERNEL_VECTOR_TABLE_H

#include "kernel/twins.h"
#include "kernel/vector/matmul_f32.h"
#include "kernel/vector/matmul_q8.h"

#ifdef BACKEND
const slm2_backend BACKEND = {
    .name = BACKEND_NAME,
    .embed = slm2_oracle_embed,
    .matmul_f32 = matmul_f32,
    .quantize = slm2_oracle_quantize,
    .matmul_q8 = matmul_q8,
    .rmsnorm = slm2_oracle_rmsnorm,
    .rope_table = slm2_oracle_rope_table,
    .rope = slm2_oracle_rope,
    .kv_store = slm2_oracle_kv_store,
    .attention = slm2_oracle_attention,
    .swiglu = slm2_oracle_swiglu,
    .add = slm2_oracle_add,
    .finite = slm2_oracle_finite,
};
#endif

#endif
