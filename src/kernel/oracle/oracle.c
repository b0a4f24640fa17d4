/* kernel/oracle/oracle.c: the oracle's table. Every other backend starts as a copy of it. */
#include "kernel/oracle/oracle.h"

const slm2_backend slm2_backend_oracle = {
    .name = "oracle",
    .embed = slm2_oracle_embed,
    .matmul_f32 = slm2_oracle_matmul_f32,
    .quantize = slm2_oracle_quantize,
    .matmul_q8 = slm2_oracle_matmul_q8,
    .rmsnorm = slm2_oracle_rmsnorm,
    .rope_table = slm2_oracle_rope_table,
    .rope = slm2_oracle_rope,
    .kv_store = slm2_oracle_kv_store,
    .attention = slm2_oracle_attention,
    .swiglu = slm2_oracle_swiglu,
    .add = slm2_oracle_add,
    .finite = slm2_oracle_finite,
    .greatest = slm2_oracle_greatest,
    .exp_below = slm2_oracle_exp_below,
};
