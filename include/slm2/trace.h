/* slm2/trace.h: a look at every value on the way from token ids to logits.
 *
 * A tap is called after each stage with the stage's values at one position. What it sees at a position
 * depends on nothing that slm2_session's results do not depend on [D8]; only the order of the calls
 * depends on the tile: within a tile all of its positions pass a stage before the next stage begins.
 */
#ifndef SLM2_TRACE_H
#define SLM2_TRACE_H

#include "slm2/format.h"

SLM2_C_BEGIN

/* Stages in the order of computation (docs/NUMERICS.md). The values are pinned, the names too. */
typedef enum slm2_stage {
  SLM2_STAGE_EMBED = 0,              /* [hidden] the token's row [D12] */
  SLM2_STAGE_ATTENTION_NORM = 1,     /* [hidden] of every layer from here on [D13] */
  SLM2_STAGE_Q_PROJ = 2,             /* [heads * head_dim] */
  SLM2_STAGE_K_PROJ = 3,             /* [kv_heads * head_dim] */
  SLM2_STAGE_V_PROJ = 4,             /* [kv_heads * head_dim] */
  SLM2_STAGE_Q_ROPE = 5,             /* [heads * head_dim] normalised per head and rotated [D14] */
  SLM2_STAGE_K_ROPE = 6,             /* [kv_heads * head_dim] the same, before it is stored [D18] */
  SLM2_STAGE_ATTENTION = 7,          /* [heads * head_dim] [D15] */
  SLM2_STAGE_O_PROJ = 8,             /* [hidden] */
  SLM2_STAGE_ATTENTION_RESIDUAL = 9, /* [hidden] the residual stream after attention [D17] */
  SLM2_STAGE_MLP_NORM = 10,          /* [hidden] */
  SLM2_STAGE_GATE_PROJ = 11,         /* [intermediate] */
  SLM2_STAGE_UP_PROJ = 12,           /* [intermediate] */
  SLM2_STAGE_SWIGLU = 13,            /* [intermediate] [D16] */
  SLM2_STAGE_DOWN_PROJ = 14,         /* [hidden] */
  SLM2_STAGE_RESIDUAL = 15,          /* [hidden] the residual stream after the layer */
  SLM2_STAGE_FINAL_NORM = 16,        /* [hidden] where logits are computed */
  SLM2_STAGE_LOGITS = 17,            /* [vocab] */
} slm2_stage;
#define SLM2_STAGES 18u
#define SLM2_LAYER_STAGES 15u /* ATTENTION_NORM .. RESIDUAL */

/* "embed", "attention_norm", ... in lower case; NULL for a value that is none. */
const char *slm2_stage_name(slm2_stage stage);
/* Number of values at one position; 0 for a value that is none. */
uint32_t slm2_stage_width(const slm2_config *config, slm2_stage stage);

/* values [n] are valid during the call. layer: 0 for EMBED, the number of layers for FINAL_NORM and LOGITS. */
typedef void slm2_tap_fn(void *user, slm2_stage stage, uint32_t layer, uint32_t position, const float *values, uint32_t n);

SLM2_C_END

#endif
