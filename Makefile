# The commands of everyday work; each is one line that you can also type.
.PHONY: help setup test test-file test-failed test-all lint format docs pages attack kill

help:       ## this list
	@sed -n "s|^\([a-z-]*\):.*## |\1: |p" Makefile

setup:      ## make or update .venv
	bash -c 'paddle=; . tools/setup.sh'
test:       ## the quick tests
	bash tools/test.sh
test-file:  ## one file: make test-file FILE=tests/paddle_rope/test_rotary.py
	.venv/bin/python -m pytest $(FILE)
test-failed: ## the quick tests, those that failed last time first
	.venv/bin/python -m pytest -m "not slow" --failed-first
test-all:   ## all tests, as CI runs them
	bash .ci/run
lint:       ## style, format and types
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy
format:     ## rewrite files in the common format
	.venv/bin/ruff check --fix . ; .venv/bin/ruff format .
docs:       ## the site of the documents, into site/
	bash tools/docs.sh
pages:      ## renew the pages that come from the code
	.venv/bin/python -m tests.repository.pages
attack:     ## mutants of every format and folder; work for each byte of an input
	.venv/bin/python -m tests.attack
	.venv/bin/python -m tests.attack.work
kill:       ## kill training and other work at random moments, and resume
	.venv/bin/python -m tests.kill --kills 30 --seed 0
