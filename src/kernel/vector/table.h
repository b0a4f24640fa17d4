/* kernel/vector/table.h: a backend from the vector sources, under the names BACKEND and BACKEND_NAME. Slots without a twin,
 * because none was measured to gain, are the oracle's. */
#ifndef SLM2_KERNEL_VECTOR_TABLE_H
#define SLM2_KERNEL_VECTOR_TABLE_H

#include "kernel/twins.h"
#include "kernel/vector/add.h"
#include "kernel/vector/attention.h"
#include "kernel/vector/finite.h"
#include "kernel/vector/kv_store.h"
#include "kernel/vector/logprob.h"
#include "kernel/vector/matmul_f32.h"
#include "kernel/vector/matmul_q8.h"
#include "kernel/vector/quantize.h"
#include "kernel/vector/rmsnorm.h"
#include "kernel/vector/rope.h"
#include "kernel/vector/swiglu.h"

#ifdef BACKEND
const slm2_backend BACKEND = {
    .name = BACKEND_NAME,
    .embed = slm2_oracle_embed,
    .matmul_f32 = matmul_f32,
    .quantize = quantize,
    .matmul_q8 = matmul_q8,
    .rmsnorm = rmsnorm,
    .rope_table = slm2_oracle_rope_table,
    .rope = rope,
    .kv_store = kv_store,
    .attention = attention,
    .swiglu = swiglu,
    .add = add,
    .finite = finite,
    .greatest = greatest,
    .exp_below = exp_below,
};
#endif

#endif
