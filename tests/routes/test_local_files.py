from route_specs import a_route, compared, launched, said
from tokenizer_cases import VOCABULARY, gguf_file, model_folder

from routeproof.routes.inventory import take_inventory
from routeproof.routes.local_files import local_fields


def test_files_of_a_launched_engine_are_read(tmp_path):
    target = gguf_file(tmp_path / "t.gguf")
    draft = gguf_file(tmp_path / "d.gguf", **{"general.name": "small"})
    spec = a_route(
        launch=launched("llama-server", "-m", str(target), "-md", str(draft))
    )
    found = local_fields(spec, None)
    assert found["tokenizer.digest"] == found["speculation.draft.tokenizer"]
    assert found["model.digest"].startswith("sha256:")
    assert found["tokenizer.vocabulary_size"] == "7"
    assert "observed.alignment" not in found


def test_a_draft_of_another_vocabulary_is_told_in_words(tmp_path):
    target = model_folder(tmp_path / "t")
    draft = model_folder(tmp_path / "d", words=[*VOCABULARY[:-1], "other"])
    spec = a_route(launch=launched("serve", "-m", str(target), "-md", str(draft)))
    found = local_fields(spec, None)
    assert found["tokenizer.digest"] != found["speculation.draft.tokenizer"]
    assert "some token ids stand for different tokens" in found["observed.alignment"]
    assert "model.digest" not in found


def test_a_path_filled_in_later_is_taken_from_what_the_engine_says(tmp_path):
    target = gguf_file(tmp_path / "t.gguf")
    spec = a_route(launch=launched("llama-server", "-m", "{demo_model}"))
    assert local_fields(spec, None) == {}
    found = local_fields(spec, said("llama.cpp", model=str(target)))
    assert found["tokenizer.vocabulary_size"] == "7"
    same = a_route(launch=launched("x", "-m", "{demo_model}", "-md", "{demo_model}"))
    both = local_fields(same, said("llama.cpp", model=str(target)))
    assert both["speculation.draft.tokenizer"] == both["tokenizer.digest"]


def test_nothing_is_read_of_an_engine_that_somebody_else_started(tmp_path):
    target = gguf_file(tmp_path / "t.gguf")
    assert local_fields(a_route(), said("llama.cpp", model=str(target))) == {}


def test_a_template_of_the_command_wins_over_that_of_the_files(tmp_path):
    target = gguf_file(tmp_path / "t.gguf")
    words = ("llama-server", "-m", str(target))
    plain = local_fields(a_route(launch=launched(*words)), None)
    assert "tokenizer.chat_template_digest" in plain
    other = launched(*words, "--chat-template-file", "mine.jinja")
    assert "tokenizer.chat_template_digest" not in local_fields(
        a_route(launch=other), None
    )


def test_a_broken_or_missing_file_is_no_error(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"nonsense")
    spec = a_route(launch=launched("x", "-m", str(tmp_path / "m.gguf")))
    assert set(local_fields(spec, None)) == {"model.digest"}
    gone = a_route(launch=launched("x", "-m", str(tmp_path / "gone.gguf")))
    assert local_fields(gone, None) == {}


def test_other_contents_behind_the_same_name_are_another_model(tmp_path):
    routes = []
    for name in ("plain", "tuned"):
        (tmp_path / name).mkdir()
        path = gguf_file(tmp_path / name / "m.gguf", **{"general.name": name})
        routes.append(a_route(launch=launched("x", "-m", str(path)), model=None))
    assert {c.field for c in compared(*routes).changes} == {"model.digest"}
    found = take_inventory(routes[0], None)
    assert next(f for f in found.fields if f.name == "model.digest").note == (
        "from the model files"
    )


def test_requantized_weights_are_another_file_and_meant_to_be(tmp_path):
    routes = []
    for name in ("q4", "q2"):
        (tmp_path / name).mkdir()
        path = gguf_file(tmp_path / name / "m.gguf", **{"general.name": name})
        launch = launched("x", "-m", str(path))
        routes.append(
            a_route(launch=launch, model=None, weights=name, changes=("weights",))
        )
    assert all(change.intended for change in compared(*routes).changes)
