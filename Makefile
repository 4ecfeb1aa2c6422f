# make demo    train on handwritten words and compare with a model that ignores neighbours
# make test    style, types, the Python tests, and the C++ core under sanitizers
# make test-gpu  the tests of kernels on an NVIDIA GPU, and under compute-sanitizer if it is there
# make abuse   MINUTES=10: random trainings, damaged files, bad moments, until the time is over
# make abuse-sanitized   attacks on model files, checkpoints and inference, with sanitizers
# make tsan    the C++ core under the thread sanitizer
# make docs    the documentation as a site, in build/docs
# make wheel   a wheel and an sdist in dist/, each tried in a clean environment
# make lint    style and types;  make format  puts the style right
# make clean   back to a fresh clone
#
# All that is needed is Python 3.10 or later, a C++20 compiler and make. Everything else goes into
# .venv, which is made with $(PYTHON); run `make clean` before you change it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
INSTALL := sh $(VENV)/install
# What is compiled here runs here: kernels for other processors are left to `make wheel`.
HERE := SKBUILD_CMAKE_DEFINE=HEDGEROW_FOR_THIS_MACHINE=ON
# Python compiles a module when it is first imported and keeps the result: most of what is installed
# never is, and no process compiles what another has.
unexport PYTHONDONTWRITEBYTECODE

CPP := $(shell find cpp bindings -name '*.cpp' -o -name '*.hpp')
KERNELS := $(shell find src/hedgerow/cuda -name '*.cu' -o -name '*.cuh') tests/reference/cuda_shim.hpp
BUILD_INPUTS := pyproject.toml CMakeLists.txt $(filter-out cpp/tests/%,$(CPP))
JOBS := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
# A cmake from the wheel is found, and no flags of this make reach the one that cmake starts. The
# build that the Python tests wait for has precedence: this one uses what others leave idle.
SANITIZE_ENV := nice -n 5 env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL PATH="$(abspath $(BIN)):$$PATH"

# Parts side by side, each with its output in one piece where make can do that.
SIDE_BY_SIDE := --no-print-directory -j3 \
	$(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# A wheel for every Python from 3.12 on is built by one of these; any other builds for itself alone.
WHEEL_PYTHON ?= $(or $(shell for python in python3.12 python3.13 python3.14; do \
	$$python -c pass 2>/dev/null && echo $$python && break; done),$(PYTHON))

.PHONY: abuse abuse-sanitized demo docs test test-gpu test-python sanitize tsan lint format wheel clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	@$(BIN)/python examples/ocr.py

docs: $(VENV)/.docs-tools
	@$(BIN)/python -m sphinx -W --keep-going -q -j auto -d build/doctrees docs build/docs
	@echo "build/docs/index.html"

test:
	@echo "style and types, the Python tests and the core under sanitizers: side by side"
	@$(MAKE) $(SIDE_BY_SIDE) lint sanitize test-python

test-python: $(VENV)/.test-tools $(VENV)/.chromium
	@$(BIN)/python -m pytest --quiet -n $(JOBS) --dist worksteal

# The tests of kernels on a GPU, not on the CPU by a shim; then, where the tools of CUDA are there,
# once more with checks of every access, and for races.
GPU_TESTS := HEDGEROW_TEST_DEVICE=cuda $(BIN)/python -m pytest --quiet tests/cuda
test-gpu: $(VENV)/.test-tools
	@$(HERE) $(INSTALL) --editable ".[cuda,test]"
	@$(GPU_TESTS)
	@if command -v compute-sanitizer >/dev/null; then for tool in memcheck racecheck; do \
		echo "compute-sanitizer --tool $$tool"; \
		HEDGEROW_TEST_DEVICE=cuda compute-sanitizer --tool $$tool --error-exitcode 1 \
			--target-processes all $(BIN)/python -m pytest --quiet tests/cuda/test_chain.py \
			tests/cuda/test_learner.py || exit 1; done; \
	else echo "no compute-sanitizer: not checked by memcheck and racecheck"; fi

# The thread sanitizer of GCC 12 does not start where addresses are drawn at random too freely.
RUN_WITH_thread := $(shell command -v setarch >/dev/null && setarch -R true 2>/dev/null \
	&& echo setarch -R)
SANITIZER ?= address
sanitize: $(VENV)/.cmake
	@$(SANITIZE_ENV) cmake -G "Unix Makefiles" -S . -B build/sanitize-$(SANITIZER) \
		-DHEDGEROW_SANITIZE=$(SANITIZER) >/dev/null
	@$(SANITIZE_ENV) cmake --build build/sanitize-$(SANITIZER) --parallel $(JOBS) >/dev/null
	@$(RUN_WITH_$(SANITIZER)) build/sanitize-$(SANITIZER)/core_test

tsan:
	@$(MAKE) --no-print-directory sanitize SANITIZER=thread

MINUTES ?= 10
abuse: $(VENV)/.test-tools
	@cd tests && ../$(BIN)/python -m abuse --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# The attacks on model files, checkpoints and inference, with a module that is built with the
# address and undefined-behaviour sanitizers. Without site packages (-S) the module that is
# installed in place does not come first.
SANITIZED := $(abspath build/sanitized)
SANITIZED_FLAGS := -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS
SANITIZED_KINDS ?= files-models files-checkpoints differential-trellis
abuse-sanitized: $(VENV)/.test-tools
	@$(INSTALL) nanobind
	@$(SANITIZE_ENV) cmake -G "Unix Makefiles" -S . -B $(SANITIZED) \
		-DPython_EXECUTABLE=$(abspath $(BIN))/python \
		-Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir) \
		-DCMAKE_CXX_FLAGS="$(SANITIZED_FLAGS)" >/dev/null
	@$(SANITIZE_ENV) cmake --build $(SANITIZED) --target _core --parallel $(JOBS) >/dev/null 2>&1
	@rm -rf $(SANITIZED)/package && mkdir -p $(SANITIZED)/package/hedgerow
	@ln -s $(abspath src)/hedgerow/* $(SANITIZED)/_core*.so $(SANITIZED)/package/hedgerow
	@packages=$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])') && cd tests && \
		LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED)/package:$$packages \
		../$(BIN)/python -S -m abuse --minutes $(MINUTES) --kinds $(SANITIZED_KINDS) \
		$(if $(SEED),--seed $(SEED))

lint: $(VENV)/.test-tools
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/clang-format --dry-run -Werror $(CPP) $(KERNELS)

format: $(VENV)/.test-tools
	@$(BIN)/ruff check --fix-only
	@$(BIN)/ruff format
	@$(BIN)/clang-format -i $(CPP) $(KERNELS)

wheel:
	@$(WHEEL_PYTHON) -c 'import sys; sys.version_info >= (3, 12) or print( \
		"note: this Python builds a wheel for itself alone; one for all from 3.12 on needs", \
		"CPython 3.12 or later: make wheel WHEEL_PYTHON=python3.12")'
	@rm -rf dist build/wheel
	@$(WHEEL_PYTHON) -m venv build/wheel/tools
	@build/wheel/tools/bin/python -m pip install --quiet --disable-pip-version-check build
	@echo "building an sdist, and a wheel from it"
	@build/wheel/tools/bin/python -m build --outdir dist . >build/wheel/log 2>&1 \
		|| { cat build/wheel/log; exit 1; }
	@for package in dist/*.whl dist/*.tar.gz; do \
		echo "trying $$package" && rm -rf build/wheel/clean \
		&& $(WHEEL_PYTHON) -m venv build/wheel/clean \
		&& build/wheel/clean/bin/python -m pip install --quiet --disable-pip-version-check $$package \
		&& build/wheel/clean/bin/python -W error tests/smoke.py || exit 1; \
	done
	@ls -l dist

clean:
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache src/hedgerow/_core.pyi
	find src tests benchmarks examples docs -name __pycache__ -prune -exec rm -rf {} +

# To install a pip takes seconds: that of $(PYTHON) does the work where it can, from 22.3 on. All it
# installs is uv, which is several times as fast but reads none of pip's settings. Without uv, or if
# uv cannot download packages with its own settings, pip installs everything.
$(VENV)/install:
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv --without-pip $(VENV)
	@if $(PYTHON) -m pip --python $(BIN)/python --version >/dev/null 2>&1; then \
		printf '#!/bin/sh\nexec "%s" -m pip --python "%s" "$$@"\n' \
			"$$($(PYTHON) -c 'import sys; print(sys.executable)')" "$(abspath $(BIN))/python" \
			>$(BIN)/pip && chmod +x $(BIN)/pip; \
	else $(BIN)/python -m ensurepip --default-pip >/dev/null; fi
	@uv="$(BIN)/uv pip install --quiet --python $(BIN)/python"; \
	{ $(PIP_INSTALL) --only-binary :all: uv && $$uv --dry-run pip; } >/dev/null 2>&1 \
		|| uv="$(PIP_INSTALL)"; \
	echo "exec $$uv \"\$$@\"" >$@

$(VENV)/.installed: $(VENV)/install $(VENV)/.cmake $(BUILD_INPUTS)
	@echo "building and installing hedgerow"
	@$(HERE) $(INSTALL) --editable .
	@touch $@

# In one go: what is needed is looked up once.
$(VENV)/.test-tools: $(VENV)/install $(VENV)/.cmake $(BUILD_INPUTS)
	@echo "building hedgerow, and installing it with the test tools"
	@$(HERE) $(INSTALL) --editable ".[test]"
	@touch $@ $(VENV)/.installed

$(VENV)/.docs-tools: $(VENV)/.installed
	@echo "installing the tools of the documentation"
	@$(INSTALL) "hedgerow[docs]"
	@touch $@

# Neither waits for .venv, unless cmake is to be installed there: in `make test` they start at once.
$(VENV)/.chromium:
	@sh tests/install_chromium.sh
	@mkdir -p $(VENV) && touch $@

$(VENV)/.cmake: $(if $(shell command -v cmake),,$(VENV)/install)
	@command -v cmake >/dev/null || $(INSTALL) cmake
	@mkdir -p $(VENV) && touch $@
