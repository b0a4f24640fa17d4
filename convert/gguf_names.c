/* convert/gguf_names.c: what the same thing is called in SLM2 and in GGUF. */
#include "convert/gguf_model.h"
#include "convert/text.h"
#include "format/layout.h"

static const char layer_prefix[] = "model.layers.";

static const struct {
  const char *slm2, *gguf;
} whole[] = {{"model.embed_tokens.weight", "token_embd.weight"},
             {"model.norm.weight", "output_norm.weight"},
             {"lm_head.weight", "output.weight"}},
  in_layer[] = {{".input_layernorm.weight", ".attn_norm.weight"},
                {".self_attn.q_proj.weight", ".attn_q.weight"},
                {".self_attn.k_proj.weight", ".attn_k.weight"},
                {".self_attn.v_proj.weight", ".attn_v.weight"},
                {".self_attn.o_proj.weight", ".attn_output.weight"},
                {".self_attn.q_norm.weight", ".attn_q_norm.weight"},
                {".self_attn.k_norm.weight", ".attn_k_norm.weight"},
                {".post_attention_layernorm.weight", ".ffn_norm.weight"},
                {".mlp.gate_proj.weight", ".ffn_gate.weight"},
                {".mlp.up_proj.weight", ".ffn_up.weight"},
                {".mlp.down_proj.weight", ".ffn_down.weight"}};

static bool same(const char *a, const char *b) { return text_compare(a, text_length(a), b, text_length(b)) == 0; }

void slm2_gguf_rename(slm2_section *s) {
  char name[sizeof s->name] = "blk.";
  size_t n_prefix = sizeof layer_prefix - 1, n = 4;
  for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
    if (same(s->name, whole[i].slm2)) {
      text_copy(s->name, sizeof s->name, whole[i].gguf);
      return;
    }
  }
  if (memcmp(s->name, layer_prefix, n_prefix) != 0) return;
  const char *p = s->name + n_prefix;
  while (*p >= '0' && *p <= '9' && n < 8) name[n++] = *p++;
  for (size_t i = 0; i < sizeof in_layer / sizeof in_layer[0]; i++) {
    if (!same(p, in_layer[i].slm2)) continue;
    text_copy(name + n, sizeof name - n, in_layer[i].gguf);
    text_copy(s->name, sizeof s->name, name);
    return;
  }
}

const char *const slm2_gguf_own_keys[] = {"format_version", "license", "source", "source_revision", "chat_format",
                                          "rope_theta", "do_sample", "temperature", "top_k", "top_p", "repetition_penalty",
                                          "bos_token_id", "eos_token_ids", "pad_token_id"};
const uint32_t slm2_n_gguf_own_keys = sizeof slm2_gguf_own_keys / sizeof slm2_gguf_own_keys[0];

void slm2_gguf_own_key(uint32_t i, char out[SLM2_GGUF_OWN_KEY_MAX]) {
  size_t n = sizeof SLM2_GGUF_OWN - 1;
  memcpy(out, SLM2_GGUF_OWN, n);
  text_copy(out + n, SLM2_GGUF_OWN_KEY_MAX - n, slm2_gguf_own_keys[i]);
}

uint32_t slm2_gguf_own_field(uint32_t i) {
  uint32_t field = 0;
  while (!same(slm2_metadata_key(field), slm2_gguf_own_keys[i])) field++; /* every own key is one of the header's */
  return field;
}
