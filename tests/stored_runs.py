"""Small run folders that were judged, for the tests of what reads runs."""

from record_cases import a_manifest, a_record

from routeproof.jobs.judge import judge
from routeproof.records.store import RunFolder
from routeproof.workloads.case import Case
from routeproof.workloads.cases import write_cases


def a_case(i):
    return Case(
        id=f"case-{i:03d}",
        class_="odd" if i % 2 else "even",
        messages=({"role": "user", "content": f"Say {i}."},),
        reference=str(i),
        scorers=("exact_match",),
    )


def a_run(
    path,
    *,
    cases=120,
    wrong=(),
    accepted=3,
    slow=1.0,
    machine=1.0,
    started="2026-11-30T12:00:00+00:00",
    fingerprint="f" * 64,
    digest_of="a",
):
    """A judged run of a lossless candidate that is twice as fast.

    ``wrong``: numbers of the cases the candidate gets wrong. ``accepted``: of four
    drafts. ``slow``: factor on the candidate's times. ``machine``: on everybody's.
    """
    folder = RunFolder.create(path)
    write_cases([a_case(i) for i in range(cases)], folder.cases_path)
    records = []
    for phase in ("quality", "latency"):
        for i in range(cases):
            for arm in ("baseline", "candidate"):
                is_candidate = arm == "candidate"
                took = machine * (0.5 * slow if is_candidate else 1.0)
                took *= 1 + 0.01 * (i % 7)
                is_wrong = is_candidate and i in wrong
                start = 4.0 * i + (2.0 if is_candidate else 0.0)
                records.append(
                    a_record(
                        request_id=f"{phase}-{arm}-{i}",
                        arm=arm,
                        phase=phase,
                        block=i // 8,
                        case_id=f"case-{i:03d}",
                        intended_s=start,
                        dispatched_s=start,
                        end_s=start + took,
                        chunk_s=(start + 0.2 * took, start + took),
                        first_visible_s=start + 0.2 * took,
                        finish_reason="stop",
                        text="wrong" if is_wrong else str(i),
                        output_tokens=20,
                        prompt_tokens=10,
                        drafted=40 if is_candidate else None,
                        accepted=10 * accepted + i % 3 if is_candidate else None,
                    )
                )
    folder.append(records)
    folder.flush()
    folder.write_manifest(
        a_manifest(
            run_id=path.name,
            created_wall=started,
            fingerprint=fingerprint,
            finished=True,
            route_diff=_routes(digest_of),
        )
    )
    judge(path)
    return path


def _routes(mark):
    def side(name, fields):
        return {
            "fields": [
                {"name": key, "value": value, "known": "read_back"}
                for key, value in fields.items()
            ],
            "digest": name * 64,
        }

    return {
        "baseline": side("b", {"model": "toy"}),
        "candidate": side(mark, {"model": "toy", "engine.version": f"1.{mark}"}),
        "changes": [],
        "change_class": "lossless",
        "is_speculative": True,
    }
