#!/usr/bin/env bash
# Two simulated engines, what the gateway would do, and a walk of the way back.
set -euo pipefail
routeproof simulate --port 8000 & trusted=$!
routeproof simulate --port 8001 --draft-tokens 4 & fast=$!
trap 'kill $trusted $fast' EXIT
for port in 8000 8001; do
  until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/health"; do sleep 0.1; done
done
routeproof canary check canary.yaml
routeproof canary drill canary.yaml --how trigger
