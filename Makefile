# `make demo` runs an example study, `make check` builds with assertions and runs all tests; both first install the Debian
# packages that are missing, as `make setup` does. `make` builds build/release/bin/spiked from what is there.
PRESET ?= dev

.PHONY: all setup demo check docs paper-tables task-tables cache-tables noise-tables real-tables check-hf fuzz lint clean

all:
	cmake --preset release -DSPIKED_TESTS=OFF
	cmake --build --preset release --target spiked

setup:
	@tools/setup

demo: setup
	$(MAKE) all
	build/release/bin/spiked demo

# Tables 1 to 4 of the paper: printed values, our values on synthetic blocks, standard errors, differences. Takes
# minutes.
paper-tables: all
	build/release/bin/spiked run validation/studies/paper-tables.toml -o results/paper-tables.spiked --no-report
	build/release/bin/spiked show results/paper-tables.spiked --against validation/studies/paper-tables.csv
	build/release/bin/spiked report results/paper-tables.spiked --against validation/studies/paper-tables.csv

# The paper's task tables with two small models, FOLDER/rope-lm and FOLDER/needle of MODELS=FOLDER. Takes minutes.
task-tables: all
	mkdir -p results
	tools/task-tables "$${MODELS:?name the folder of the models: make task-tables MODELS=FOLDER}" > results/TASKS.md
	mv results/TASKS.md docs/TASKS.md

# Errors of methods on the dumps in DUMPS=FOLDER: pairs NAME-a*.safetensors and NAME-b*.safetensors, two sequences of a
# model.
cache-tables: all
	mkdir -p results
	tools/cache-tables "$${DUMPS:?name the folder of the dumps: make cache-tables DUMPS=FOLDER}" > results/CACHES.md
	mv results/CACHES.md docs/CACHES.md

# What estimators lose under heavy tails and elliptical noise. Takes minutes.
noise-tables: all
	mkdir -p results
	tools/noise-law-tables > results/NOISE_LAWS.md
	mv results/NOISE_LAWS.md docs/NOISE_LAWS.md

# The paper's tables for the real language models in MODELS=FOLDER, one folder each with config.json, model.safetensors and
# tokens.npy. Takes hours; the same command goes on where it was stopped, and keeps answers of earlier commits of a version.
# What is measured of which model stands in tools/real-tables.toml.
# Needles need a Python with the package tokenizers: make real-tables MODELS=FOLDER PYTHON=/path/to/python3.
real-tables:
	cmake --preset release -DSPIKED_TESTS=ON
	cmake --build --preset release --target spiked sim_tests
	mkdir -p results
	$(or $(PYTHON),/usr/bin/python3) tools/real-tables "$${MODELS:?name the folder of the models: make real-tables MODELS=FOLDER}" > results/REAL_MODELS.md
	mv results/REAL_MODELS.md docs/REAL_MODELS.md

# Builds and runs all tests, or only the test programs of MODULES="core random theory sim estimators ...".
check: setup
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) $(if $(MODULES),--target $(MODULES:%=%_tests))
	ctest --preset $(PRESET) -j $$(nproc) $(if $(MODULES),--tests-regex '^($(subst $() ,|,$(strip $(MODULES))))/')

# Tests spiked.hf and spiked.e2e with PyTorch and several versions of transformers, which it installs into build/hf (150 MB).
check-hf: setup
	cmake --preset release -DSPIKED_TESTS=OFF
	cmake --build --preset release --target spiked spiked_c
	tools/hf-tests build/release/lib/libspiked.so.0 build/release/bin/spiked

# Runs every reader under libFuzzer with sanitizers, for MINUTES in total. Needs clang, which `make setup` does not
# install.
MINUTES ?= 10
fuzz: setup
	tools/fuzz --minutes $(MINUTES)

# Renders docs/ into build/site, which needs no network, with what Debian has for it.
docs:
	@tools/setup mkdocs mkdocs-material python3-pymdownx libjs-katex
	tools/make-site

# Checks format and runs clang-tidy. Needs clang-format and clang-tidy, which `make setup` does not install.
lint:
	tools/lint

clean:
	rm -rf build
