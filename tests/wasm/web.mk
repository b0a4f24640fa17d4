# The browser engine's C as it is tested natively (tests/unit/test_web_*.c): without the threads, which are wasm's own.
WEB_SRC = $(filter-out wasm/gate.c wasm/mem.c wasm/pool.c wasm/probe.c,$(wildcard wasm/*.c))
WEB_OBJ = $(WEB_SRC:%.c=$(BUILD)/obj/%.o)
$(WEB_OBJ): FREESTANDING = -ffreestanding
$(BUILD)/tests/test_web_%: tests/unit/test_web_%.c $(WEB_OBJ) $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -o $@ $< $(WEB_OBJ) $(LIB)
-include $(WEB_OBJ:.o=.d)
