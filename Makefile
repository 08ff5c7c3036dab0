# make demo   install into a virtual environment and run a 1024x1024x1024 matrix product end to end
# make test   install the test tools and pass the suite; VECTORS=DIR adds other compilers' programs
# make lint   format, lint and types
# make golden write the golden files anew, and what is generated in docs

PYTHON ?= python3
VENV ?= .venv
VECTORS ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint golden clean

demo: $(VENV)/installed
	$(BIN)/accel demo

test: $(VENV)/test
	$(BIN)/python -m pytest -n auto $(if $(VECTORS),--vectors=$(VECTORS)) $(ARGS)

lint: $(VENV)/lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p accel

golden: $(VENV)/test
	$(BIN)/python -m pytest -q -n auto tests/compiler --update-golden
	$(BIN)/accel isa > docs/isa.md
	$(BIN)/accel registers > docs/registers.md

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .
	touch $@

$(VENV)/test: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .[test]
	touch $@ $(VENV)/installed

$(VENV)/lint: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .[test,lint]
	touch $@ $(VENV)/installed $(VENV)/test

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
