# dsv3 - one program, its tools, tests and benchmarks. `make help` lists what can be made.
# scripts/probe.sh finds the libraries; nothing is downloaded, nothing is written outside BUILD.
SAN    ?=
BUILD  ?= build$(if $(SAN),-$(SAN:1=san))
# The dependencies of objects know them by one spelling of BUILD, whoever gives it.
override BUILD := $(BUILD:$(CURDIR)/%=%)
ARCH   ?= native
CFLAGS ?= -g
WERROR ?= $(if $(filter lint,$(GOALS)),1,0)
V      ?= 0
T      ?=
FUZZ_SECONDS ?= 10
CC     := mpicc
Q      := $(if $(filter 1,$(V)),,@)
GOALS  := $(or $(MAKECMDGOALS),all)

WARN   := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
          $(if $(filter 1,$(WERROR)),$(if $(SAN),,-Werror))

LIBS   := $(LDFLAGS)
LIB_FLAGS :=
MACHINE :=
# What the machine has. Found once, kept in BUILD/probe; a missing library ends here with its name.
ifneq ($(filter-out help clean demo uninstall,$(GOALS)),)
PROBE  := $(shell CPPFLAGS='$(CPPFLAGS)' LDFLAGS='$(LDFLAGS)' PKG_CONFIG_PATH='$(PKG_CONFIG_PATH)' \
          sh scripts/probe.sh '$(BUILD)' '$(CC)' '$(ARCH)')
ifneq ($(filter all,$(GOALS)),)
$(info $(file <$(BUILD)/probe/libs.txt))
endif
ifneq ($(PROBE),)
$(error $(PROBE))
endif
include $(BUILD)/probe/libs.mk
endif

SANITIZE := $(if $(SAN),-fno-omit-frame-pointer -fno-sanitize-recover=all $(addprefix -fsanitize=,\
          $(SAN:1=address undefined float-cast-overflow)))

# errno and trapping are of no use in numeric loops; everything else stays strict IEEE. What is said
# last counts: the processor is ARCH's, whatever CFLAGS of the environment say.
FLAGS  := -Isrc -I. -I$(BUILD) $(CPPFLAGS) $(sort $(LIB_FLAGS)) $(if $(SAN),-O1,-O3) $(CFLAGS) \
          -std=gnu17 $(MACHINE) -fno-math-errno -fno-trapping-math -fopenmp $(WARN) $(SANITIZE)
FOREIGN := $(filter -march=% -mcpu=%,$(CFLAGS) $(CPPFLAGS))
ifneq ($(and $(FOREIGN),$(filter all,$(GOALS))),)
$(info   $(FOREIGN) of CFLAGS gives way to ARCH=$(ARCH): $(MACHINE))
endif
# Libraries that lie elsewhere are found there at run time as well.
comma  := ,
ELSEWHERE := $(filter-out -L/usr/lib%,$(filter -L/%,$(LIBS)))
LIBS   += -lm -lpthread $(ELSEWHERE:-L%=-Wl$(comma)-rpath$(comma)%)

FUZZFLAGS := -std=gnu17 $(WARN) -Isrc -I. -g -O1 -fsanitize=fuzzer-no-link,address,undefined \
          -fno-sanitize-recover=all
# git archive writes its commit into .version.
VERSION := $(or $(filter-out $$Format%,$(file <.version)),\
          $(shell GIT_OPTIONAL_LOCKS=0 git describe --always --dirty 2>/dev/null),unknown)

SRC    := $(filter-out src/main.c,$(wildcard src/*/*.c kernels/*.c kernels/cpu/*.c))
OBJ    := $(SRC:%.c=$(BUILD)/%.o)
MAIN   := $(if $(wildcard src/main.c),$(BUILD)/dsv3)
TOOLS  := $(patsubst tools/%.c,$(BUILD)/dsv3-%,$(wildcard tools/*.c))
TESTS  := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/t_*.c))
TESTLIB := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/lib_*.c))
TESTS   += $(addprefix $(BUILD)/tests/,ckpt_digest ckpt_spoil h5_open no_cross_memory faulty_io.so)
BENCHES := $(patsubst kernels/bench/%.c,$(BUILD)/bench/%,$(wildcard kernels/bench/*.c))
FUZZ   := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*.c))
FUZZED := $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,\
          $(filter-out src/base/version.c,\
          $(filter src/base/% src/topo/% src/config/% src/data/%,$(SRC))) \
          src/ckpt/io.c src/ckpt/cover.c src/ckpt/manifest.c $(addprefix tools/ckpt/,\
          decode.c foreign.c hf_config.c hf_config_write.c hf_rope.c safetensors.c))

all: $(MAIN) $(TOOLS) ## dsv3 and its tools (the default)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo '  variables:      ARCH=native    processor to build for (x86-64-v3, ...)'
	@echo '                  BUILD=build    where objects and programs go'
	@echo '                  CC=mpicc, CPPFLAGS, CFLAGS=-g, LDFLAGS, V=1 (show the commands)'
	@echo '                  T=config       only the tests whose name contains it'
	@echo '                  BENCH="demo small wide", PEER=/path/to/python (with torch): of make bench'
	@echo '                  SAN=1          with the address and undefined-behaviour sanitizers,'
	@echo '                                 SAN=thread with the thread sanitizer; in BUILD-SAN'

programs: all $(TESTS) $(if $(SAN),,$(BENCHES)) ## everything that can be compiled

test: all $(TESTS) ## build and run the tests; T=NAME chooses
	@DSV3_BUILD='$(abspath $(BUILD))' tests/run $(T)

fuzz: $(FUZZ) ## feed the parsers mutated input for FUZZ_SECONDS=10 each (needs clang)
	@tests/fuzz/run $(FUZZ_SECONDS) $(FUZZ)

lint: programs ## the rules of the house that a machine can check
	@DSV3_CC='$(CC)' tools/lint

demo: ## train a small model on real text (about two minutes)
	@MAKEFLAGS= DSV3_BUILD='$(BUILD)' sh scripts/demo.sh --no-install

bench: all $(BUILD)/bench/machine ## speed and memory of training steps, checkpoints, tokens
	@MAKEFLAGS= DSV3_BUILD='$(BUILD)' BENCH='$(BENCH)' PEER='$(PEER)' sh scripts/bench.sh
	@echo && MAKEFLAGS= DSV3_BUILD='$(BUILD)' sh scripts/bench-io.sh

bench-kernels: $(BENCHES) ## time single operations and compare them with the machine's bounds
	@for b in $(sort $(BENCHES)); do $$b || exit 1; done

PREFIX ?= /usr/local
INTO   := $(DESTDIR)$(PREFIX)
SHARE  := $(INTO)/share
PAGES  := $(patsubst $(BUILD)/%,$(SHARE)/man/man1/%.1,$(MAIN) $(TOOLS))
COMPLETE := $(SHARE)/bash-completion/completions
install: all ## programs, manual pages, completion into DESTDIR/PREFIX (/usr/local)
	install -d $(INTO)/bin $(SHARE)/man/man1 $(COMPLETE) $(SHARE)/doc/dsv3
	install $(MAIN) $(TOOLS) $(INTO)/bin
	for p in $(MAIN) $(TOOLS); do \
	    sh scripts/manpage.sh $$p >$(SHARE)/man/man1/$${p##*/}.1 || exit 1; done
	sh scripts/completion.sh $(BUILD) >$(COMPLETE)/dsv3
	for p in $(notdir $(TOOLS)); do ln -sf dsv3 $(COMPLETE)/$$p; done
	cp -R README.md configs docs $(SHARE)/doc/dsv3

uninstall: ## what install has put there
	rm -f $(addprefix $(INTO)/bin/,$(notdir $(MAIN) $(TOOLS))) \
	    $(addprefix $(COMPLETE)/,$(notdir $(MAIN) $(TOOLS))) $(PAGES)
	rm -rf $(SHARE)/doc/dsv3

clean: ## remove BUILD
	rm -rf $(BUILD)

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(Q),@echo '  cc    $<')
	$(Q)$(CC) $(FLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/libdsv3.a: $(OBJ)
	$(Q)rm -f $@ && ar rcs $@ $^
$(BUILD)/dsv3: $(BUILD)/src/main.o $(BUILD)/libdsv3.a
	$(if $(Q),@echo '  link  $@')
	$(Q)$(CC) $(FLAGS) -o $@ $^ $(LIBS)
# The tool NAME is tools/NAME.c and, when there are more parts, all of tools/NAME/.
.SECONDEXPANSION:
$(BUILD)/dsv3-%: $(BUILD)/tools/%.o \
                 $$(addprefix $(BUILD)/,$$(addsuffix .o,$$(basename $$(wildcard tools/$$*/*.c)))) \
                 $(BUILD)/libdsv3.a
	$(if $(Q),@echo '  link  $@')
	$(Q)$(CC) $(FLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(TESTLIB) $(BUILD)/libdsv3.a
	$(Q)$(CC) $(FLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/%.so: tests/preload/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O1 -g -fPIC -shared $(WARN) -o $@ $< -ldl -lpthread
$(BUILD)/bench/%: $(BUILD)/kernels/bench/%.o $(BUILD)/libdsv3.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) -o $@ $^ $(LIBS)

$(BUILD)/fuzz/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)OMPI_CC=clang $(CC) $(FUZZFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%.o $(FUZZED)
	$(Q)OMPI_CC=clang $(CC) $(FUZZFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# Objects know the flags they were built with, and one the version.
$(BUILD)/src/base/version.o: FLAGS += -DDSV3_VERSION='"$(VERSION)"'
$(BUILD)/src/base/version.o: $(BUILD)/version
$(BUILD)/flags: NOTE := $(CC) $(FLAGS) $(LIBS)
$(BUILD)/version: NOTE := $(VERSION)
$(BUILD)/flags $(BUILD)/version: FORCE
	@mkdir -p $(@D)
	@echo '$(NOTE)' | cmp -s - $@ || echo '$(NOTE)' >$@

FORCE:
.PHONY: all help programs test fuzz lint demo bench bench-kernels install uninstall clean FORCE
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
