"""A run folder keeps what it was given and says clearly what is wrong with it."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_cases import a_manifest, a_record

from routeproof.errors import StoredRunError
from routeproof.records.columns import Column, Ragged
from routeproof.records.parquet import read_table, write_table
from routeproof.records.record import Record
from routeproof.records.schema import FIELDS, NUMERIC_COLUMNS
from routeproof.records.store import RunFolder


def stored(tmp_path, records):
    folder = RunFolder.create(tmp_path / "run")
    folder.append(records)
    folder.flush()
    return next(RunFolder.open(tmp_path / "run").parts())


def test_every_field_of_a_record_has_a_column():
    places = {place for _, place in FIELDS.values()}
    sections = ("key", "clock", "answer", "stream", "usage", "engine")
    fields = {
        f"{section}.{name}"
        for section in sections
        for name in getattr(a_record(), section).__struct_fields__
    }
    assert places == fields
    assert set(Record.__struct_fields__) == {*sections, "schema"}


def test_a_record_comes_back_as_it_went_in(tmp_path):
    full = a_record(
        request_id="r1",
        chunk_s=(1.25, 1.250001, 2.5),
        chunk_tokens=(4, 1, 2),
        text="Zürich \u2028 东京",
        token_ids=(5, 6),
        output_tokens=7,
        accepted_hist=(1, 0, 2),
    )
    thin = a_record(request_id="r2", outcome="timeout", text=None, chunk_s=())
    records = stored(tmp_path, [full, thin])
    assert records.n == 2
    assert records.text("text").tolist() == ["Zürich \u2028 东京", None]
    assert records.text("outcome").tolist() == ["completed", "timeout"]
    np.testing.assert_array_equal(
        records.ragged("chunk_s").of(0), [1.25, 1.250001, 2.5]
    )
    assert records.ragged("chunk_tokens").known.tolist() == [True, False]
    assert records.ragged("accepted_hist").of(0).tolist() == [1, 0, 2]
    assert records.number("output_tokens").known.tolist() == [True, False]
    assert records.number("intended_s").values.tolist() == [1.0, 1.0]
    assert not records.number("queue_s").known.any()


def test_chunk_times_longer_than_half_an_hour_are_kept(tmp_path):
    records = stored(tmp_path, [a_record(chunk_s=(2.0, 9001.000001))])
    assert records.ragged("chunk_s").of(0).tolist() == [2.0, 9001.000001]


def test_first_byte_is_never_after_the_first_chunk_of_the_same_read(tmp_path):
    stamps = [0.1234567 + k * 1.7e-7 for k in range(50)]
    rows = [a_record(first_byte_s=1 + s, chunk_s=(1 + s,)) for s in stamps]
    records = stored(tmp_path, rows)
    first = records.number("first_byte_s").values
    np.testing.assert_array_equal(first, records.ragged("chunk_s").values)


def test_only_what_is_asked_for_is_read(tmp_path):
    stored(tmp_path, [a_record(text="long")])
    part = next(RunFolder.open(tmp_path / "run").parts(only=("chunk_s", "outcome")))
    assert set(part.texts) == {"outcome"}
    assert part.ragged("chunk_s").of(0).tolist() == list(a_record().stream.chunk_s)
    assert "text" not in NUMERIC_COLUMNS


def test_two_writers_share_a_folder_without_a_clash(tmp_path):
    first = RunFolder.create(tmp_path / "run")
    second = RunFolder.open(tmp_path / "run", shard=1)
    for folder, name in ((first, "a"), (second, "b"), (first, "c")):
        folder.append([a_record(request_id=name)])
        folder.flush()
    assert len(first.part_paths()) == 3
    assert first.done_request_ids() == {"a", "b", "c"}


def test_flushing_nothing_writes_nothing(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    assert folder.flush() is None
    assert list(folder.parts()) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b[: len(b) // 2],
        lambda b: b"<html>not found</html>",
        lambda b: b"PAR1" + b"x" * 100 + b"PAR1",
        lambda b: b[:4] + bytes(len(b) - 12) + b[-8:],
        lambda b: b[:40] + bytes(40) + b[80:],
    ],
    ids=["empty", "torn", "html", "fake footer", "zeroed", "damaged page"],
)
def test_a_damaged_part_is_a_stored_run_error(tmp_path, damage, capfd):
    stored(tmp_path, [a_record(text="words " * 50)])
    (path,) = RunFolder.open(tmp_path / "run").part_paths()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StoredRunError, match="part-000-000001"):
        list(RunFolder.open(tmp_path / "run").parts())


def test_a_foreign_parquet_file_is_refused(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    column = Column(np.ones(3), np.ones(3, dtype=bool))
    write_table(folder.path / "records" / "part-000-000001.parquet", {"x": column})
    with pytest.raises(StoredRunError, match="not one of"):
        list(folder.parts())


def test_a_newer_schema_asks_for_an_upgrade(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_manifest(a_manifest())
    newer = folder.manifest_path.read_bytes().replace(b'"schema": 1', b'"schema": 99')
    folder.manifest_path.write_bytes(newer)
    with pytest.raises(StoredRunError, match="schema 99") as caught:
        folder.read_manifest()
    assert "upgrade" in (caught.value.hint or "")


def test_a_stray_temporary_file_is_not_a_part(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    (folder.path / "records" / ".part-000-000001.parquet.77.tmp").write_bytes(b"half")
    assert list(folder.parts()) == []


def test_the_manifest_comes_back_as_it_went_in(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_manifest(a_manifest(finished=True))
    assert folder.read_manifest() == a_manifest(finished=True)
    again = folder.manifest_path.read_bytes()
    folder.write_manifest(a_manifest(finished=True))
    assert folder.manifest_path.read_bytes() == again


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 1}', '{"schema": 1, "x": 2}']
)
def test_a_damaged_manifest_is_a_stored_run_error(tmp_path, text):
    folder = RunFolder.create(tmp_path / "run")
    folder.manifest_path.write_text(text)
    with pytest.raises(StoredRunError, match="manifest.json"):
        folder.read_manifest()


def test_a_folder_that_is_no_run_says_so(tmp_path):
    with pytest.raises(StoredRunError, match="not a run folder"):
        RunFolder.open(tmp_path)


def test_a_second_run_does_not_overwrite_the_first(tmp_path):
    RunFolder.create(tmp_path / "run").write_manifest(a_manifest())
    with pytest.raises(StoredRunError, match="holds a run already"):
        RunFolder.create(tmp_path / "run")


def test_a_folder_with_records_and_no_manifest_is_a_run_too(tmp_path):
    stored(tmp_path, [a_record()])
    with pytest.raises(StoredRunError, match="holds a run already"):
        RunFolder.create(tmp_path / "run")


def test_records_stay_pending_when_they_cannot_be_written(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.append([a_record(request_id="kept")])
    folder.flush()
    (folder.path / "records").rename(folder.path / "elsewhere")
    folder.append([a_record(request_id="late")])
    with pytest.raises(StoredRunError, match="cannot write"):
        folder.flush()
    (folder.path / "elsewhere").rename(folder.path / "records")
    folder.flush()
    assert folder.done_request_ids() == {"kept", "late"}


@pytest.mark.slow
@given(
    rows=st.lists(
        st.one_of(st.none(), st.lists(st.integers(0, 2**31 - 1), max_size=4)),
        max_size=6,
    ),
    words=st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=6),
)
@settings(max_examples=40, deadline=None)
def test_any_lists_and_texts_survive_parquet(tmp_path_factory, rows, words):
    n = min(len(rows), len(words))
    rows, words = rows[:n], words[:n]
    flat = np.array([v for r in rows for v in (r or ())], dtype=float)
    offsets = np.concatenate([[0], np.cumsum([len(r or ()) for r in rows])])
    known = np.array([r is not None for r in rows], dtype=bool)
    texts = np.empty(n, dtype=object)
    texts[:] = words
    path = tmp_path_factory.mktemp("p") / "t.parquet"
    lists = Ragged(offsets.astype(np.int64), flat, known)
    write_table(path, {"l": lists, "t": texts}, storage={"l": "int32"})
    got_n, columns, _ = read_table(path)
    assert got_n == n
    if any(known):
        got = columns["l"]
        assert [got.of(i).tolist() for i in range(n)] == [r or [] for r in rows]
        assert got.known.tolist() == known.tolist()
    if any(w is not None for w in words):
        assert columns["t"].tolist() == words


def test_the_manifest_holds_only_plain_data():
    assert msgspec.json.decode(
        msgspec.json.encode(a_manifest()), type=type(a_manifest())
    )
