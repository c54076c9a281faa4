"""Other load generators by their command lines, each in an environment of its own.

``.bench-peers/<tool>`` holds the environments that ``make bench-peers`` makes. Each
tool is told to send the same number of requests at the same concurrency to the same
mock; what is taken from it is the time to first token as it reports it.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil

PLACE = Path(__file__).parent.parent / ".bench-peers"
WITHIN_S = 240
QUIET = {"GUIDELLM_LOG_DISABLED": "1", "TOKENIZERS_PARALLELISM": "false"}
"""AIPerf takes no tokenizer from a folder when told that the hub is out of reach."""
WORDS = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

words = {"[UNK]": 0, "word": 1, "hi": 2, "mock": 3, "prompt": 4}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
fast.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
fast.save_pretrained(sys.argv[1])
open(sys.argv[1] + "/config.json", "w").write('{"model_type": "gpt2"}')
"""
"""A tokenizer of five words: two of the tools do not start without one."""


def tools():
    """Names of those that are installed."""
    return [name for name in TOOLS if _program(name).exists()]


def versions():
    """Of every peer that is installed: as its package says, with its Python."""
    asked = [("plain", "aiohttp"), ("plain", "httpx"), *((n, n) for n in tools())]
    return [_version(place, name) for place, name in asked]


def _version(place, name):
    said = subprocess.run(
        [PLACE / place / "bin" / "python", "-c", _VERSION, name],
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.strip()


_VERSION = (
    "import importlib.metadata as m, platform, sys;"
    "print(sys.argv[1], m.version(sys.argv[1]), 'on Python', platform.python_version())"
)


def measure(name, port, streams, requests, folder):
    """Run a tool once.

    Returns:
        Reported TTFT percentiles in ms, CPU seconds and peak RSS of its processes,
        wall seconds and how many requests it counts as done.
    """
    folder = Path(folder) / name
    folder.mkdir(parents=True)
    command, read = TOOLS[name](port, streams, requests, folder)
    program = [str(_program(name)), *map(str, command)]
    used = _watched(program, folder)
    return {**read(folder), **used}


def _watched(command, folder):
    began = time.perf_counter()
    peak, cpu = 0, {}
    with (folder / "log.txt").open("wb") as log:
        process = psutil.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **QUIET},
            cwd=folder,
            start_new_session=True,
        )
        while process.poll() is None:
            if time.perf_counter() - began > WITHIN_S:
                os.killpg(process.pid, signal.SIGKILL)
            rss = 0
            try:
                for one in [process, *process.children(recursive=True)]:
                    times, memory = one.cpu_times(), one.memory_info()
                    cpu[one.pid] = times.user + times.system
                    rss += memory.rss
            except psutil.Error:
                pass
            peak = max(peak, rss)
            time.sleep(0.1)
    if process.returncode != 0:
        tail = (folder / "log.txt").read_text(errors="replace")[-600:]
        raise RuntimeError(f"exit code {process.returncode}: {tail}")
    return {
        "cpu_s": sum(cpu.values()),
        "rss_mb": peak / 1e6,
        "wall_s": time.perf_counter() - began,
    }


def _program(name):
    return PLACE / name / "bin" / name


def _tokenizer(name, folder):
    place = folder / "tokenizer"
    python = _program(name).parent / "python"
    subprocess.run(
        [python, "-c", WORDS, place],
        check=True,
        capture_output=True,
        env={**os.environ, **QUIET},
    )
    return place


def aiperf(port, streams, requests, folder):
    (folder / "prompts.jsonl").write_text('{"text": "hi"}\n')
    command = [
        *("profile", "--model", "mock", "--url", f"http://127.0.0.1:{port}"),
        *("--endpoint-type", "chat", "--streaming"),
        *("--concurrency", streams, "--request-count", requests),
        *("--input-file", folder / "prompts.jsonl"),
        *("--custom-dataset-type", "single_turn"),
        *("--tokenizer", _tokenizer("aiperf", folder)),
        *("--artifact-dir", folder / "out", "--ui", "none", "--no-auto-plot"),
    ]

    def read(folder):
        (path,) = (folder / "out").rglob("profile_export_aiperf.json")
        found = json.loads(path.read_text())
        first = found["time_to_first_token"]
        done = found["request_count"]["avg"]
        return {"p50": first["p50"], "p95": first["p95"], "done": done}

    return command, read


def guidellm(port, streams, requests, folder):
    (folder / "prompts.jsonl").write_text('{"prompt": "hi"}\n' * requests)
    command = [
        "run",
        "--backend",
        f"kind=openai_http,target=http://127.0.0.1:{port},model=mock",
        *("--profile", f"kind=concurrent,streams={streams}"),
        *("--constraint", f"kind=max_requests,count={requests}"),
        *("--data", f"kind=json_file,path={folder / 'prompts.jsonl'}"),
        *("--output", f"kind=json,path={folder / 'out.json'}"),
        *("--disable-console", "--disable-progress"),
    ]

    def read(folder):
        (found,) = json.loads((folder / "out.json").read_text())["benchmarks"]
        metrics = found["metrics"]
        first = metrics["time_to_first_token_ms"]["successful"]["percentiles"]
        done = metrics["request_totals"]["successful"]
        return {"p50": first["p50"], "p95": first["p95"], "done": done}

    return command, read


def inference_perf(port, streams, requests, folder):
    config = {
        "api": {"type": "chat", "streaming": True},
        "data": {"type": "mock"},
        "load": {
            "type": "concurrent",
            "stages": [{"num_requests": requests, "concurrency_level": streams}],
            "num_workers": 2,
            "worker_max_concurrency": streams,
        },
        "server": {
            "type": "vllm",
            "model_name": "mock",
            "base_url": f"http://127.0.0.1:{port}",
            "ignore_eos": False,
        },
        "tokenizer": {
            "pretrained_model_name_or_path": str(_tokenizer("inference-perf", folder))
        },
        "storage": {"local_storage": {"path": str(folder / "out")}},
    }
    path = folder / "config.yml"
    path.write_text(json.dumps(config))

    def read(folder):
        (found,) = (folder / "out").rglob("summary_lifecycle_metrics.json")
        served = json.loads(found.read_text())["successes"]
        first = served["latency"]["time_to_first_token"]
        return {
            "p50": 1e3 * first["median"],
            "p95": 1e3 * first["p95"],
            "done": served["count"],
        }

    return ["--config_file", path], read


TOOLS = {"aiperf": aiperf, "guidellm": guidellm, "inference-perf": inference_perf}
