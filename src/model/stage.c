/* model/stage.c: names and widths of the stages that a tap sees. Contract: include/slm2/trace.h. */
#include "slm2/trace.h"

const char *slm2_stage_name(slm2_stage stage) {
  static const char names[SLM2_STAGES][24] = {
      "embed",  "attention_norm", "q_proj",   "k_proj",             "v_proj",   "q_rope",
      "k_rope", "attention",      "o_proj",   "attention_residual", "mlp_norm", "gate_proj",
      "up_proj", "swiglu",        "down_proj", "residual",          "final_norm", "logits",
  };
  return (unsigned)stage < SLM2_STAGES ? names[stage] : NULL;
}

uint32_t slm2_stage_width(const slm2_config *c, slm2_stage stage) {
  switch (stage) {
    case SLM2_STAGE_Q_PROJ:
    case SLM2_STAGE_Q_ROPE:
    case SLM2_STAGE_ATTENTION: return c->heads * c->head_dim;
    case SLM2_STAGE_K_PROJ:
    case SLM2_STAGE_V_PROJ:
    case SLM2_STAGE_K_ROPE: return c->kv_heads * c->head_dim;
    case SLM2_STAGE_GATE_PROJ:
    case SLM2_STAGE_UP_PROJ:
    case SLM2_STAGE_SWIGLU: return c->intermediate;
    case SLM2_STAGE_LOGITS: return c->vocab;
    case SLM2_STAGE_EMBED:
    case SLM2_STAGE_ATTENTION_NORM:
    case SLM2_STAGE_O_PROJ:
    case SLM2_STAGE_ATTENTION_RESIDUAL:
    case SLM2_STAGE_MLP_NORM:
    case SLM2_STAGE_DOWN_PROJ:
    case SLM2_STAGE_RESIDUAL:
    case SLM2_STAGE_FINAL_NORM: return c->hidden;
  }
  return 0;
}
