# Measurements of the model, not of speed. Included by the Makefile.
.PHONY: distance
$(BUILD)/distance: bench/distance.c $(LIB)
	@$(CC) $(FLAGS) -o $@ $< $(LIB) $(THREAD_LIBS) -lm
distance: $(BUILD)/distance conformance-models ## how far q8 and f16 keys are from f32, on the demo and the tiny checkpoints [D25]
	@cd $(CONFORMANCE_DIR) && $(CURDIR)/$(BUILD)/distance $(CURDIR)/bench/corpus.txt \
	  demo.slm2 tied.slm2 untied.slm2 gqa1-d64.slm2 gqa2-d128.slm2 gqa4-d128.slm2
