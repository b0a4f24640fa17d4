# Conformance with Hugging Face's software [D24], docs/CONFORMANCE.md. Included by the Makefile.
CONFORMANCE      = $(BUILD)/tests/conformance
CONFORMANCE_OBJ  = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/conformance/*.c))
CONFORMANCE_DATA = tests/data/conformance
CONFORMANCE_DIR  = $(BUILD)/conformance
CONFORMANCE_HF   = $(wildcard tests/data/hf-tiny/*/ $(CONFORMANCE_DATA)/checkpoints/*/)
DEMO            ?= models/demo.slm2

.PHONY: conformance conformance-full conformance-models conformance-refresh
conformance: $(CONFORMANCE) conformance-models ## against transformers' results: logits, greedy answers, tokenizer, chat
	@json=$$(tools/fetch_tokenizer build/cache) && $(CONFORMANCE) check $(CONFORMANCE_DATA) $(CONFORMANCE_DIR) "$$json"

conformance-full: $(CONFORMANCE) conformance-models ## the same with all 1,000 greedy prompts (minutes)
	@json=$$(tools/fetch_tokenizer build/cache) && $(CONFORMANCE) full $(CONFORMANCE_DATA) $(CONFORMANCE_DIR) "$$json"

conformance-refresh: $(CONFORMANCE) conformance-models ## make the right values anew with PyTorch and transformers (Python, an hour)
	@test -x build/venv/bin/python || python3 -m venv build/venv
	@build/venv/bin/pip install --quiet --requirement tests/conformance/requirements.txt
	@json=$$(tools/fetch_tokenizer build/cache) && build/venv/bin/python tests/conformance/refresh.py --build $(BUILD) --tokenizer "$$json"

# The checkpoints as .slm2: converted from the committed folders, made by synth, and the demo.
conformance-models: $(BUILD)/slm2 $(CONFORMANCE_DIR)/wide.slm2
	@mkdir -p $(CONFORMANCE_DIR)
	@set -e; for folder in $(CONFORMANCE_HF); do \
	  $(BUILD)/slm2 convert $$folder $(CONFORMANCE_DIR)/$$(basename $$folder).slm2 >$(CONFORMANCE_DIR)/convert.log 2>&1 || \
	    { cat $(CONFORMANCE_DIR)/convert.log; exit 1; }; done
	@cp $(DEMO) $(CONFORMANCE_DIR)/demo.slm2
$(CONFORMANCE_DIR)/wide.slm2: $(BUILD)/slm2
	@mkdir -p $(@D)
	@$(BUILD)/slm2 synth $@ --shape qwen3-0.6b-4layer --seed 1 >$(@D)/synth.log

$(CONFORMANCE_OBJ): FREESTANDING =
$(CONFORMANCE): $(CONFORMANCE_OBJ) $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) $(EXTRA) -o $@ $^ -lm

-include $(CONFORMANCE_OBJ:.o=.d)
