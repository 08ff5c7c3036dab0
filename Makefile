# make demo   install into a virtual environment and run a 1024x1024x1024 matrix product end to end
# make test   install the test tools and run the suite; VECTORS=DIR adds other compilers' programs,
#             MODELS=DIR networks
# make thorough       the suite with all random examples, and with what shows the same for one more machine or fault
# make lint   format, lint and types
# make fuzz-programs   damage real programs, COUNT=10000 of them on the simulators and a 20th on the hardware, and
#             see that errors are clean and the same everywhere; VECTORS as above, JOBS=1 processes
# make fuzz-networks   random quantized networks, COUNT=2000 of them, against ONNX Runtime, as many with float
#             operators and operators that only ONNX Runtime has between them, then small networks of
#             well-known architectures as its quantizer writes them, then COUNT=1000 instances of each rewrite rule,
#             then COUNT random graphs that random rules rewrite
# make fuzz   random programs on simulator and hardware for SECONDS=60; what differs is left in fuzz/
# make fuzz-operators   COUNT=2000 random operators on random machines, against numpy
# make fuzz-machines   random machines with random ALU operations, 20 of them with 1000 programs each, on simulator and hardware
# make prove  prove properties of the hardware for all time
# make fpga   place and route the core on an ECP5, each configuration with SEEDS=5 seeds, for docs/reference/resources.md;
#             hours, but it goes on where it was stopped; CONFIGS="tiny ecp5" prints the tables of those alone
# make golden write the golden files anew, and what is generated in docs
# make docs   build the documentation into build/docs; a warning is an error
# make bench  measure utilization, predictions, and what compiling and simulating cost (bench/README.md)
# make networks       measure networks' layers and matrix products anew, for docs/reference/networks
# make experiments    draw the plots of docs/experiments anew, but for those that need synthesis

PYTHON ?= python3
VENV ?= .venv
VECTORS ?=
MODELS ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# strict: editors and type checkers find the types. It links every file, so a new file needs a new installation
EDITABLE := $(PIP) --config-settings editable_mode=strict --editable

COUNT ?= 10000
SECONDS ?= 60
SEEDS ?= 5
JOBS ?= 1
CONFIGS ?=

.PHONY: FORCE demo test thorough lint fuzz fuzz-networks fuzz-machines fuzz-operators fuzz-programs prove fpga golden docs bench networks experiments clean

demo: $(VENV)/installed
	$(BIN)/accel demo

test: $(VENV)/test
	$(BIN)/python -m pytest -n auto --dist loadgroup $(if $(VECTORS),--vectors=$(VECTORS)) $(if $(MODELS),--models=$(MODELS)) \
	    $(ARGS)

thorough: ARGS += --thorough --hypothesis-profile=whole
thorough: test

lint: $(VENV)/lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p accel

fuzz: $(VENV)/test
	$(BIN)/python -m tests.lockstep.fuzz --seconds $(SECONDS) $(ARGS)

fuzz-programs: $(VENV)/test
	$(BIN)/python -m tests.campaign --count $(COUNT) --jobs $(JOBS) $(if $(VECTORS),--vectors $(VECTORS))
	$(BIN)/python -m tests.campaign --count $$(($(COUNT) / 20)) --jobs $(JOBS) --backends sim,rtl \
	    $(if $(VECTORS),--vectors $(VECTORS))

fuzz-networks: $(VENV)/test
	$(BIN)/python -m tests.formats.campaign $(if $(filter command line,$(origin COUNT)),--count $(COUNT)) $(ARGS)
	$(BIN)/python -m tests.formats.mixed_networks $(if $(filter command line,$(origin COUNT)),--count $(COUNT)) $(ARGS)
	$(BIN)/python -m tests.formats.architectures_campaign $(ARGS)
	$(BIN)/python -m tests.rewriting.campaign $(if $(filter command line,$(origin COUNT)),--count $(COUNT))
	$(BIN)/python -m tests.rewriting.random_walks $(if $(filter command line,$(origin COUNT)),--count $(COUNT)) $(ARGS)

fuzz-operators: $(VENV)/test
	$(BIN)/python -m tests.compiler.operators_campaign $(if $(filter command line,$(origin COUNT)),--count $(COUNT)) $(ARGS)

fuzz-machines: $(VENV)/test
	$(BIN)/python -m tests.lockstep.machines_campaign $(ARGS)

prove: $(VENV)/formal
	$(BIN)/python -m accel.hw.formal $(ARGS)

fpga: $(VENV)/fpga
	$(BIN)/python bench/resources.py $(CONFIGS) --seeds $(SEEDS) $(if $(CONFIGS),,-o docs/reference/resources.md) $(ARGS)

golden: $(VENV)/test
	$(BIN)/python -m pytest -q -n auto tests/compiler --update-golden
	$(BIN)/accel isa --config vta-int8 > docs/reference/isa.md
	$(BIN)/accel registers > docs/reference/registers.md
	$(BIN)/accel configs --markdown > docs/reference/configuration.md

docs: $(VENV)/docs
	$(BIN)/python -m sphinx -q -W --keep-going -j auto docs build/docs

bench: $(VENV)/installed
	$(BIN)/python bench/utilization.py
	$(BIN)/python bench/predictions.py
	$(BIN)/python bench/growth.py
	$(BIN)/python bench/small.py
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/functional.py $(if $(VECTORS),--vectors $(VECTORS))

networks: $(VENV)/installed
	for name in resnet18 mobilenet gemm; do \
	    $(BIN)/accel --no-cache bench $$name -o docs/reference/networks/$$name.md || exit 1; \
	    $(BIN)/accel --no-cache bench $$name --config vta-int8 -o docs/reference/networks/$$name-int8.md || exit 1; \
	done

experiments: $(VENV)/test
	for name in pipelines latency roofline buffers; do \
	    $(BIN)/accel sweep docs/experiments/$$name.toml -o docs/experiments --fresh > /dev/null || exit 1; \
	done

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# the list of files changes only if a file is added or removed; each make that runs writes its own copy
$(VENV)/files: FORCE | $(VENV)/bin/python
	@find -L accel -type f ! -name '*.pyc' | LC_ALL=C sort > $@.$$PPID
	@if cmp --silent $@.$$PPID $@; then rm $@.$$PPID; else mv $@.$$PPID $@; fi

$(VENV)/installed: pyproject.toml $(VENV)/files | $(VENV)/bin/python
	@echo "installing accel and its dependencies into $(VENV)"
	$(subst --quiet,,$(EDITABLE)) .
	touch $@

$(VENV)/test: pyproject.toml $(VENV)/files | $(VENV)/bin/python
	$(EDITABLE) ".[test]"
	touch $@ $(VENV)/installed

$(VENV)/lint: pyproject.toml $(VENV)/files | $(VENV)/bin/python
	$(EDITABLE) ".[test,lint]"
	touch $@ $(VENV)/installed $(VENV)/test

$(VENV)/formal: pyproject.toml $(VENV)/files | $(VENV)/bin/python
	$(EDITABLE) ".[formal]"
	touch $@ $(VENV)/installed

$(VENV)/fpga: pyproject.toml $(VENV)/files | $(VENV)/bin/python
	$(EDITABLE) ".[fpga]"
	touch $@ $(VENV)/installed

$(VENV)/docs: pyproject.toml $(VENV)/files | $(VENV)/bin/python
	$(EDITABLE) ".[docs]"
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
