"""Samples of engines, processes and accelerators while a run goes on.

A sample is (time on the run's clock, arm, name, value). Engine counters have the
normalised names of ``engines.adapter.Counters``; to them come ``process_rss_bytes``
and ``process_cpu_s`` of an engine whose process is known, ``device_memory_bytes`` and
its like where NVML is there, and ``process_rss_bytes``, ``process_cpu_s`` of the arm
``client``. What cannot be sampled is absent, never 0.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic_ns
from types import ModuleType
from typing import Any

import numpy as np
import psutil

from routeproof.engines.http import fetch
from routeproof.errors import RouteproofError
from routeproof.records.columns import Column
from routeproof.records.parquet import AnyColumn
from routeproof.records.store import RunFolder
from routeproof.runs.parse import Origin
from routeproof.runs.request import Target

EVERY_S = 1.0
STORE_EVERY_S = 30.0
"""What a kill -9 may cost of the samples."""

SCRAPE_DEADLINE_S = 2.0
_DEFAULT_METRICS_PATH = "/metrics"
_MISSES_ALLOWED = 3
"""A page that could not be had this often in a row is not asked for again: waiting
for it would cost more than it tells."""

Sample = tuple[float, str, str, float]


@dataclass(slots=True)
class Sampler:
    """Takes samples and stores them as telemetry parts.

    Attributes:
        targets: By arm; an arm that shares another's route is left out.
        nvml: The module ``pynvml``, already initialised; ``None`` without it.
    """

    targets: Mapping[str, Target]
    folder: RunFolder
    origin: Origin
    nvml: ModuleType | None = None
    _samples: list[Sample] = field(default_factory=list)
    _silent: set[str] = field(default_factory=set)
    _misses: dict[str, int] = field(default_factory=dict)
    _processes: dict[int, list[psutil.Process]] = field(default_factory=dict)

    async def sample(self, busy: str, *, thorough: bool = False) -> None:
        """One round: counters of the busy arm, processes of all.

        Args:
            busy: The arm under load; the others' counters stand still.
            thorough: Look for new child processes too (takes milliseconds).
        """
        at_s = self.origin.seconds(monotonic_ns())
        self._process("client", psutil.Process().pid, at_s, thorough=False)
        for arm, target in self.targets.items():
            if target.pid is not None:
                self._process(arm, target.pid, at_s, thorough=thorough)
        if self.nvml is not None:
            self._samples.extend(self._devices(busy, at_s))
        await self._counters(busy)

    async def keep_sampling(self, busy: str, *, every_s: float = EVERY_S) -> None:
        """Sample again and again, until cancelled."""
        while every_s == math.inf:
            await asyncio.sleep(3600)
        while True:
            await asyncio.sleep(every_s)
            await self.sample(busy)
            oldest_s = self._samples[0][0] if self._samples else math.inf
            if self.origin.seconds(monotonic_ns()) - oldest_s >= STORE_EVERY_S:
                await asyncio.to_thread(self.flush)

    def flush(self) -> None:
        """Write what was sampled.

        Raises:
            StoredRunError: Disk full or read-only folder.
        """
        if not self._samples:
            return
        taken, self._samples = self._samples, []
        at_s, arms, names, values = zip(*taken, strict=True)
        columns: dict[str, AnyColumn] = {
            "at_s": _known(at_s),
            "arm": np.array(arms, dtype=object),
            "name": np.array(names, dtype=object),
            "value": _known(values),
        }
        self.folder.write_telemetry(columns)

    async def _counters(self, arm: str) -> None:
        target = self.targets.get(arm)
        if target is None or arm in self._silent:
            return
        path = getattr(target.adapter, "metrics_path", _DEFAULT_METRICS_PATH)
        if not path:
            self._silent.add(arm)
            return
        url = target.endpoint.at(path)
        try:
            reply = await fetch(target.endpoint, url, deadline_s=SCRAPE_DEADLINE_S)
        except (RouteproofError, OSError, TimeoutError):
            self._misses[arm] = self._misses.get(arm, 0) + 1
            if self._misses[arm] >= _MISSES_ALLOWED:
                self._silent.add(arm)
            return
        self._misses.pop(arm, None)
        at_s = self.origin.seconds(monotonic_ns())
        if reply.status != 200:
            # It has no such page; asking once a second would only disturb it.
            self._silent.add(arm)
            return
        found = target.adapter.counters(reply.text, at_s)
        self._samples.extend((at_s, arm, n, v) for n, v in found.values.items())

    def _process(self, arm: str, pid: int, at_s: float, *, thorough: bool) -> None:
        with contextlib.suppress(psutil.Error):
            if thorough or pid not in self._processes:
                parent = psutil.Process(pid)
                children = [] if arm == "client" else parent.children(recursive=True)
                self._processes[pid] = [parent, *children]
            rss, cpu_s = 0, 0.0
            for process in self._processes[pid]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    rss += process.memory_info().rss
                    times = process.cpu_times()
                    cpu_s += times.user + times.system
            if rss:
                self._samples.append((at_s, arm, "process_rss_bytes", float(rss)))
                self._samples.append((at_s, arm, "process_cpu_s", cpu_s))

    def _devices(self, busy: str, at_s: float) -> list[Sample]:
        nvml: Any = self.nvml
        pids = {
            process.pid: arm
            for arm, target in self.targets.items()
            if target.pid is not None
            for process in self._processes.get(target.pid, ())
        }
        held: dict[str, float] = {}
        samples: list[Sample] = []
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            for name, value in _device(nvml, handle).items():
                samples.append((at_s, busy, f"device{index}_{name}", value))
            for process in _running(nvml, handle):
                arm, used = pids.get(process.pid), process.usedGpuMemory
                if arm is not None and used is not None:
                    held[arm] = held.get(arm, 0.0) + float(used)
        samples.extend((at_s, a, "device_memory_bytes", v) for a, v in held.items())
        return samples


def open_nvml() -> ModuleType | None:
    """NVML's bindings (extra ``nvml``), initialised; ``None`` without a driver."""
    try:
        import pynvml  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    found: ModuleType = pynvml
    return found


def _device(nvml: Any, handle: Any) -> dict[str, float]:
    """Memory in use, power and utilisation, as far as the device tells."""
    readings: dict[str, Callable[[], float]] = {
        "memory_used_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "busy_share": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
    }
    found: dict[str, float] = {}
    for name, read in readings.items():
        with contextlib.suppress(nvml.NVMLError):
            found[name] = float(read())
    return found


def _running(nvml: Any, handle: Any) -> list[Any]:
    with contextlib.suppress(nvml.NVMLError):
        return list(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return []


def _known(values: tuple[float, ...]) -> Column:
    return Column(np.array(values, dtype=np.float64), np.ones(len(values), np.bool_))
