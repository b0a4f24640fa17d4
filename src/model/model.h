/* model/model.h: the bound model, as the forward pass sees it. Everything points into the lent file or into the memory
 * given to slm2_model_init; nothing here ever changes after that. Contract: include/slm2/model.h.
 */
#ifndef SLM2_MODEL_INTERNAL_H
#define SLM2_MODEL_INTERNAL_H

#include "kernel/kernel.h"
#include "slm2/model.h"

/* The weights of one layer, in the order they are used. Vectors are little-endian f32 in the file. */
typedef struct slm2_layer {
  const uint8_t *attention_norm; /* [hidden] input_layernorm */
  slm2_matrix q, k, v;           /* [heads * head_dim, hidden], [kv_heads * head_dim, hidden] twice */
  slm2_matrix o;                 /* [hidden, heads * head_dim] */
  const uint8_t *q_norm, *k_norm; /* [head_dim], shared by all heads of the layer */
  const uint8_t *mlp_norm;       /* [hidden] post_attention_layernorm */
  slm2_matrix gate, up;          /* [intermediate, hidden] */
  slm2_matrix down;              /* [hidden, intermediate] */
} slm2_layer;

struct slm2_model {
  slm2_header header;
  const uint8_t *json; /* the header's bytes */
  slm2_tokenizer *tokenizer; /* NULL: none in the file */
  uint8_t *token_mask;       /* [vocab / 8] */
  uint32_t think_open, think_close; /* ids of <think> and </think>, or SLM2_NO_TOKEN */

  const uint8_t *inv_freq;   /* [head_dim / 2], each in (0, 1] */
  slm2_matrix embedding;     /* [vocab, hidden] */
  slm2_layer *layers;        /* [header.config.layers] */
  const uint8_t *final_norm; /* [hidden] */
  slm2_matrix logits;        /* [vocab, hidden]: the embedding when tied */
};

/* Points the weights of model (header set, layers placed) into data. The tokenizer section goes to *tokenizer. */
SLM2_NODISCARD slm2_status slm2_model_bind(slm2_model *model, const uint8_t *data, const uint8_t **tokenizer, slm2_error *error);

#endif
