import pytest

from routeproof.errors import ConfigError
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.workloads.fingerprint import fingerprint
from routeproof.workloads.replay import load_traces, replay_offsets_s, trace_digests

ROWS = [(0.0, 5), (1.0, 6), (1.0, 7), (4.0, 8)]


def a_workload(tmp_path, **arrivals):
    (tmp_path / "t.jsonl").write_text(
        "\n".join(
            f'{{"offset_s":{at},"input_tokens":{n},"output_tokens":1}}'
            for at, n in ROWS
        )
    )
    spec = ArrivalSpec(trace="t.jsonl", **arrivals)
    return WorkloadSpec(load=LoadSpec(sweep=spec, soak=spec))


def replayed(tmp_path, rate_per_s=None, **arrivals):
    workload = a_workload(tmp_path, **arrivals)
    traces = load_traces(workload, tmp_path)
    assert list(traces) == ["t.jsonl"]
    return replay_offsets_s(workload.load.sweep, traces, rate_per_s=rate_per_s).tolist()


def test_a_trace_is_replayed_as_it_was(tmp_path):
    assert replayed(tmp_path) == [0.0, 1.0, 1.0, 4.0]
    assert replayed(tmp_path, duration_s=2.0) == [0.0, 1.0, 1.0]
    assert replayed(tmp_path, requests=2) == [0.0, 1.0]


def test_another_rate_presses_the_whole_and_keeps_its_bursts(tmp_path):
    assert replayed(tmp_path, rate_per_s=1.5) == [0.0, 0.5, 0.5, 2.0]


def test_a_stage_without_its_trace_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="was not loaded"):
        replay_offsets_s(ArrivalSpec(), {})
    with pytest.raises(ConfigError, match="cannot read the trace"):
        load_traces(
            WorkloadSpec(load=LoadSpec(soak=ArrivalSpec(trace="none.csv"))), tmp_path
        )


def test_a_changed_trace_changes_the_fingerprint(tmp_path):
    workload = a_workload(tmp_path)
    before = fingerprint((), workload, trace_digests=trace_digests(workload, tmp_path))
    with (tmp_path / "t.jsonl").open("a") as file:
        file.write('\n{"offset_s":9,"input_tokens":1,"output_tokens":1}')
    after = fingerprint((), workload, trace_digests=trace_digests(workload, tmp_path))
    assert before != after
