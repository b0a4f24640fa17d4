/* cli/bench_report.c: the figures of `slm2 bench` as a table and as JSON. */
#include "cli/bench.h"

#include <stdio.h>

static void line(cli_text *t, const char *name, double value, const char *unit) {
  cli_text_print(t, "  %-26s %10.2f %s\n", name, value, unit);
}

static void print_decode(cli_text *t, const bench_result *r) {
  char name[48];
  for (uint32_t i = 0; i < r->decode.n; i++) {
    const bench_decode *d = &r->decode_at[i];
    snprintf(name, sizeof name, "decode after %u", r->decode.at[i]);
    cli_text_print(t, "  %-26s %10.2f tok/s   %.1f %% of the bound (%.1f MB a token, %.2f GB/s)\n", name, d->tokens_per_second,
                   100 * d->share, d->bytes_per_token / 1e6, d->bytes_per_second / 1e9);
  }
}

void bench_print_table(cli_text *t, const bench_options *o, const bench_result *r) {
  char name[48], a[CLI_GROUPED_MAX], b[CLI_GROUPED_MAX];
  const uint64_t planned = r->file_bytes + r->index_bytes + r->session_bytes;
  cli_text_print(t, "%s: profile %s, kv %s, backend %s, threads %u, context %u, medians of %u\n", o->file,
                 slm2_profile_name((slm2_profile)o->setup.profile), slm2_kv_name((slm2_kv_type)o->setup.kv),
                 slm2_backend_name(o->setup.backend), o->setup.threads, r->context, r->repeats);
  for (uint32_t i = 0; i < r->prefill.n; i++) {
    snprintf(name, sizeof name, "prefill %u", r->prefill.at[i]);
    line(t, name, r->prefill_rate[i], "tok/s");
  }
  print_decode(t, r);
  line(t, "load", r->load_ms, "ms");
  if (r->cold) line(t, "first token, cold", r->first_cold_ms, "ms, load from the disk included");
  else cli_text_print(t, "  %-26s not available\n", "first token, cold");
  line(t, "first token, warm", r->first_warm_ms, "ms, load included");
  line(t, "first token, again", r->first_again_ms, "ms");
  for (uint32_t i = 0; i < r->n_bandwidth; i++) {
    snprintf(name, sizeof name, "memory read, %u thread%s", r->bandwidth[i].threads, r->bandwidth[i].threads == 1 ? "" : "s");
    line(t, name, r->bandwidth[i].bytes_per_second / 1e9, "GB/s");
  }
  if (r->usage.peak_rss != 0)
    cli_text_print(t, "  %-26s %10.1f MB     planned %.1f MB: file %s bytes, index and session %s\n", "peak memory",
                   (double)r->usage.peak_rss / 1e6, (double)planned / 1e6, cli_grouped(r->file_bytes, a),
                   cli_grouped(planned - r->file_bytes, b));
  else cli_text_print(t, "  %-26s not available\n", "peak memory");
  cli_text_print(t, "  %-26s %10s minor, %s major, %.2f a token while decoding\n", "page faults",
                 cli_grouped(r->usage.minor_faults, a), cli_grouped(r->usage.major_faults, b), r->faults_per_token);
  if (r->tlb_counted) line(t, "TLB misses", r->tlb_per_token, "a token while decoding");
  else cli_text_print(t, "  %-26s not available\n", "TLB misses");
  cli_text_print(t, "  %-26s %10.2f x weights, %.2f x activations, %.2f x both\n", "cost of subnormals", r->subnormal.weights,
                 r->subnormal.activations, r->subnormal.both);
}

/* Milliseconds, rates and ratios: six digits are more than the clock knows. */
static void json_number(cli_text *t, const char *name, double value) { cli_text_print(t, ",\"%s\":%.6g", name, value); }

static void json_lists(cli_text *t, const bench_result *r) {
  cli_text_puts(t, ",\"prefill\":[");
  for (uint32_t i = 0; i < r->prefill.n; i++) {
    cli_text_print(t, "%s{\"tokens\":%u", i == 0 ? "" : ",", r->prefill.at[i]);
    json_number(t, "tokens_per_second", r->prefill_rate[i]);
    cli_text_puts(t, "}");
  }
  cli_text_puts(t, "],\"decode\":[");
  for (uint32_t i = 0; i < r->decode.n; i++) {
    const bench_decode *d = &r->decode_at[i];
    cli_text_print(t, "%s{\"after\":%u", i == 0 ? "" : ",", r->decode.at[i]);
    json_number(t, "tokens_per_second", d->tokens_per_second);
    cli_text_print(t, ",\"bytes_per_token\":%.0f,\"read_bytes_per_second\":%.0f", d->bytes_per_token, d->bytes_per_second);
    json_number(t, "share", d->share);
    cli_text_puts(t, "}");
  }
  cli_text_puts(t, "],\"bandwidth\":[");
  for (uint32_t i = 0; i < r->n_bandwidth; i++)
    cli_text_print(t, "%s{\"threads\":%u,\"bytes_per_second\":%.0f}", i == 0 ? "" : ",", r->bandwidth[i].threads,
                   r->bandwidth[i].bytes_per_second);
  cli_text_puts(t, "]");
}

void bench_print_json(cli_text *t, const bench_options *o, const bench_result *r) {
  cli_text_print(t, "{\"version\":\"%s\",\"identity\":\"%s\"", CLI_VERSION, r->identity);
  cli_text_print(t, ",\"profile\":\"%s\",\"kv\":\"%s\",\"backend\":\"%s\"", slm2_profile_name((slm2_profile)o->setup.profile),
                 slm2_kv_name((slm2_kv_type)o->setup.kv), slm2_backend_name(o->setup.backend));
  cli_text_print(t, ",\"threads\":%u,\"context\":%u,\"tokens\":%u,\"repeats\":%u,\"quick\":%s", o->setup.threads, r->context,
                 r->tokens, r->repeats, o->quick ? "true" : "false");
  cli_text_print(t, ",\"file_bytes\":%llu,\"weight_bytes\":%llu", (unsigned long long)r->file_bytes,
                 (unsigned long long)r->weight_bytes);
  json_lists(t, r);
  json_number(t, "load_ms", r->load_ms);
  if (r->cold) json_number(t, "first_token_cold_ms", r->first_cold_ms);
  else cli_text_puts(t, ",\"first_token_cold_ms\":null");
  json_number(t, "first_token_warm_ms", r->first_warm_ms);
  json_number(t, "first_token_again_ms", r->first_again_ms);
  if (r->usage.peak_rss != 0) cli_text_print(t, ",\"peak_rss\":%llu", (unsigned long long)r->usage.peak_rss);
  else cli_text_puts(t, ",\"peak_rss\":null");
  cli_text_print(t, ",\"index_bytes\":%llu,\"session_bytes\":%llu", (unsigned long long)r->index_bytes,
                 (unsigned long long)r->session_bytes);
  cli_text_print(t, ",\"minor_faults\":%llu,\"major_faults\":%llu", (unsigned long long)r->usage.minor_faults,
                 (unsigned long long)r->usage.major_faults);
  json_number(t, "decode_faults_per_token", r->faults_per_token);
  if (r->tlb_counted) json_number(t, "tlb_misses_per_token", r->tlb_per_token);
  else cli_text_puts(t, ",\"tlb_misses_per_token\":null");
  cli_text_print(t, ",\"subnormal_cost\":{\"weights\":%.6g,\"activations\":%.6g,\"both\":%.6g}}\n", r->subnormal.weights,
                 r->subnormal.activations, r->subnormal.both);
}
