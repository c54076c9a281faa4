import json
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizer_cases import VOCABULARY, gguf_file, model_folder

from routeproof.errors import FormatError
from routeproof.routes.alignment import (
    PROBES,
    alignment_problems,
    first_difference,
    token_differences,
)
from routeproof.routes.gguf import read_header
from routeproof.routes.tokenizer_files import TokenizerFacts, read_tokenizer


def test_a_folder_and_a_gguf_file_of_one_tokenizer_agree(tmp_path):
    folder = read_tokenizer(model_folder(tmp_path / "hf", add_bos_token=False))
    single = read_tokenizer(gguf_file(tmp_path / "m.gguf"))
    assert folder.vocabulary_size == single.vocabulary_size == 7
    assert folder.digest == single.digest
    assert folder.template_digest == single.template_digest
    assert folder.special == single.special == {"bos": 1, "eos": 2, "unk": 0}
    assert folder.stop_ids == single.stop_ids == (2,)
    assert alignment_problems(folder, single) == ()


def test_added_tokens_belong_to_the_vocabulary(tmp_path):
    added = [{"id": 7, "content": "<think>", "special": False}]
    found = read_tokenizer(model_folder(tmp_path, added=added))
    assert found.vocabulary_size == 8


def test_a_unigram_vocabulary_is_a_list(tmp_path):
    folder = model_folder(tmp_path)
    whole = {"model": {"type": "Unigram", "vocab": [[w, 0.0] for w in VOCABULARY]}}
    plain = read_tokenizer(folder)
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    assert read_tokenizer(folder).digest == plain.digest


@pytest.mark.parametrize(
    ("post_processor", "adds"),
    [
        (None, False),
        ({"type": "ByteLevel"}, False),
        (
            {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]},
            True,
        ),
        ({"single": [{"Sequence": {"id": "A"}}]}, False),
        (
            {"processors": [{"type": "x"}, {"single": [{"SpecialToken": {}}]}]},
            True,
        ),
    ],
)
def test_a_bos_is_found_where_a_processor_puts_it(tmp_path, post_processor, adds):
    found = read_tokenizer(model_folder(tmp_path, post_processor=post_processor))
    assert found.adds_bos is adds


def test_stop_ids_come_from_the_generation_configuration(tmp_path):
    folder = model_folder(tmp_path)
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 2]}')
    assert read_tokenizer(folder).stop_ids == (2, 5)


def test_a_template_file_wins_over_the_configuration(tmp_path):
    folder = model_folder(tmp_path)
    before = read_tokenizer(folder).template_digest
    (folder / "chat_template.jinja").write_text("other")
    assert read_tokenizer(folder).template_digest != before
    named = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    listed = read_tokenizer(model_folder(tmp_path / "l", chat_template=named))
    plain = read_tokenizer(model_folder(tmp_path / "p", chat_template="d"))
    assert listed.template_digest == plain.template_digest


def facts(**changes) -> TokenizerFacts:
    base = TokenizerFacts(
        source="a",
        vocabulary_size=10,
        digest="d",
        special={"bos": 1, "eos": 2},
        stop_ids=(2,),
        adds_bos=True,
        template_digest="t",
    )
    return msgspec.structs.replace(base, **changes)


@pytest.mark.parametrize(
    ("changes", "field", "severity"),
    [
        ({"vocabulary_size": 11}, "tokenizer.vocabulary_size", "error"),
        ({"digest": "other"}, "tokenizer.digest", "error"),
        ({"special": {"bos": 1, "eos": 3}}, "tokenizer.eos", "error"),
        ({"stop_ids": (2, 9)}, "tokenizer.stop_ids", "warning"),
        ({"adds_bos": False}, "tokenizer.adds_bos", "warning"),
        ({"template_digest": "u"}, "tokenizer.chat_template_digest", "warning"),
    ],
)
def test_each_mismatch_of_a_draft_is_found(changes, field, severity):
    (problem,) = alignment_problems(facts(), facts(**changes))
    assert (problem.field, problem.severity) == (field, severity)
    assert problem.target != problem.draft


def test_what_a_draft_does_not_say_is_no_mismatch():
    silent = facts(special={}, stop_ids=(), adds_bos=None, template_digest=None)
    assert alignment_problems(facts(), silent) == ()


@pytest.mark.slow
@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_the_first_difference_is_the_first(one, other):
    at = first_difference(one, other)
    if at is None:
        assert one == other
    else:
        assert one[:at] == other[:at]
        assert one[at : at + 1] != other[at : at + 1]


def test_differing_probes_name_the_token():
    same = {name: [1, 2, 3] for name in PROBES}
    other = {**same, "thai": [1, 9, 3], "code": [1, 2]}
    found = {d.probe: d for d in token_differences(same, other)}
    assert set(found) == {"thai", "code"}
    assert (found["thai"].at, found["thai"].one, found["thai"].other) == (1, 2, 9)
    assert (found["code"].at, found["code"].other) == (2, None)
    assert token_differences(same, {"thai": [1, 2, 3]}) == ()


def test_probes_cover_many_scripts():
    names = {
        unicodedata.name(letter, "").split(" ")[0]
        for text in PROBES.values()
        for letter in text
        if letter.isalpha()
    }
    wanted = {"LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "DEVANAGARI", "THAI"}
    assert wanted | {"CJK", "HIRAGANA", "HANGUL"} <= names


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a GGUF file"),
        (b"PK\x03\x04", "not a GGUF file"),
        (b"GGUF\x09\x00\x00\x00", "version 9"),
        (b"GGUF\x03\x00\x00\x00", "broken or cut"),
        (b"GGUF\x03\0\0\0" + b"\0" * 8 + b"\xff" * 8, "entries in its header"),
        (b"GGUF\x03\0\0\0" + b"\0" * 8 + b"\x01" + b"\0" * 7 + b"\xff" * 8, "text of"),
    ],
)
def test_a_file_that_is_no_gguf_is_refused(tmp_path, content, says):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=says):
        read_header(path)


@pytest.mark.slow
@given(st.integers(24, 400))
def test_a_cut_gguf_is_refused_wherever_it_is_cut(tmp_path_factory, size):
    folder = tmp_path_factory.mktemp("gguf")
    whole = gguf_file(folder / "whole.gguf").read_bytes()
    cut = folder / "cut.gguf"
    cut.write_bytes(whole[: min(size, len(whole) - 1)])
    with pytest.raises(FormatError):
        read_header(cut)


def test_a_missing_or_empty_tokenizer_is_named(tmp_path):
    with pytest.raises(FormatError, match="is missing"):
        read_tokenizer(tmp_path)
    with pytest.raises(FormatError, match="cannot be read"):
        read_tokenizer(tmp_path / "none.gguf")
    bare = gguf_file(tmp_path / "b.gguf", **{"tokenizer.ggml.tokens": None})
    with pytest.raises(FormatError, match="no tokenizer in it"):
        read_tokenizer(bare)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(FormatError, match="not readable JSON"):
        read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(FormatError, match="no vocabulary"):
        read_tokenizer(tmp_path)
