"""A gateway before two scripted upstreams, for the tests of the canary."""

import contextlib
from dataclasses import dataclass

from fakes.openai_server import serving as upstream

from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway
from routeproof.canary.serve import serving

SHORT = """\
canary:
  candidate: fast
  baseline: trusted
  online_sample: {sample}
  routes: {{fast: "{fast}", trusted: "{trusted}"}}
  listen: 127.0.0.1:0
  admin: 127.0.0.1:0
  lease_s: 5
{more}"""


@dataclass
class Standing:
    """A running gateway and what stands behind it."""

    gateway: Gateway
    url: str
    trusted: object
    fast: object
    serving: object


@contextlib.asynccontextmanager
async def a_gateway(folder, *, trusted, fast, sample="100%", more="", **given):
    """Serve a canary before two scripted upstreams; ``more`` is further YAML."""
    async with upstream(trusted) as one, upstream(fast) as two:
        file = folder / "canary.yaml"
        text = SHORT.format(sample=sample, fast=two.url, trusted=one.url, more=more)
        file.write_text(text)
        gateway = Gateway(load_canary(file), **given)
        async with serving(gateway) as running:
            yield Standing(gateway, running.data_url, one, two, running)
