import msgspec
import pytest
from route_specs import a_route, said, speculation

from routeproof.errors import ConfigError, FormatError
from routeproof.proof.route import DraftSpec, EngineSpec
from routeproof.routes.inventory import take_inventory
from routeproof.routes.lock import (
    PairingLock,
    check_lock,
    lock_of,
    lock_problems,
    read_lock,
    write_lock,
)


def inventory(**changes):
    spec = a_route(**{"speculation": speculation(), **changes})
    return take_inventory(spec, said(tokenizer__chat_template_digest="t1"))


def lock(**changes) -> PairingLock:
    found = lock_of(inventory(**changes))
    assert found is not None
    return found


def other_draft(**changes) -> dict:
    draft = DraftSpec(
        **{"model": "org/Draft", "revision": "0123456789abcdef", **changes}
    )
    return {"speculation": speculation(draft=draft)}


def test_a_lock_holds_both_revisions_and_what_they_share():
    found = lock()
    assert found.target["revision"].startswith("b968826")
    assert found.draft["speculation.draft.revision"] == "0123456789abcdef"
    assert found.shared["engine.version"] == "0.33.0"
    assert found.shared["tokenizer.chat_template_digest"] == "t1"


def test_a_route_without_a_draft_model_has_no_lock():
    assert lock_of(take_inventory(a_route(), None)) is None
    ngram = speculation(method="ngram", draft=None)
    assert lock_of(take_inventory(a_route(speculation=ngram), None)) is None


def test_the_same_pair_has_no_problems():
    assert lock_problems(lock(), lock()) == ()


def test_an_upgraded_target_with_the_old_draft_is_one_sided():
    (problem,) = lock_problems(lock(), lock(revision="ffffffffffff"))
    assert (problem.kind, problem.field) == ("one_sided", "revision")
    assert "its draft was not" in problem.why


def test_an_upgraded_draft_with_the_old_target_is_one_sided():
    (problem,) = lock_problems(lock(), lock(**other_draft(revision="eeeeeeeeee")))
    assert (problem.kind, problem.field) == ("one_sided", "speculation.draft.revision")


def test_two_new_revisions_are_a_new_pair():
    now = lock(revision="ffffffffffff", **other_draft(revision="eeeeeeeeee"))
    assert {p.kind for p in lock_problems(lock(), now)} == {"new_pair"}


def test_quantizing_the_target_alone_is_one_sided():
    (problem,) = lock_problems(lock(), lock(weights="fp8"))
    assert (problem.kind, problem.field) == ("one_sided", "weights")


def test_another_engine_or_draft_length_is_in_the_surroundings():
    engine = lock(engine=EngineSpec(name="vllm", version="0.34.0"))
    longer = lock(speculation=speculation(draft_tokens=7))
    assert [p.field for p in lock_problems(lock(), engine)] == ["engine.version"]
    assert [p.kind for p in lock_problems(lock(), longer)] == ["surroundings"]


def test_what_is_not_known_any_more_is_no_change():
    thin = msgspec.structs.replace(lock(), shared={}, draft={})
    assert lock_problems(lock(), thin) == ()


def test_a_short_revision_is_the_same_revision():
    assert lock_problems(lock(), lock(revision="b968826d9c")) == ()


def test_a_lock_survives_its_file(tmp_path):
    path = tmp_path / "routeproof.lock"
    write_lock(path, lock())
    assert read_lock(path) == lock()
    first = path.read_bytes()
    write_lock(path, read_lock(path))
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]


def test_a_one_sided_upgrade_is_an_error_with_its_place(tmp_path):
    path = tmp_path / "routeproof.lock"
    assert check_lock(path, inventory()) == ()
    write_lock(path, lock())
    assert check_lock(path, inventory()) == ()
    with pytest.raises(ConfigError, match="its draft was not") as caught:
        check_lock(path, inventory(revision="ffffffffffff"))
    assert caught.value.key == "revision"
    assert "ffffffffffff" in str(caught.value)
    longer = check_lock(path, inventory(speculation=speculation(draft_tokens=7)))
    assert [p.kind for p in longer] == ["surroundings"]
    assert check_lock(path, take_inventory(a_route(), None)) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a pairing lock"),
        ("{", "is not a pairing lock"),
        ('{"schema": "routeproof.lock/1", "more": 1}', "is not a pairing lock"),
        ('{"schema": "routeproof.lock/9"}', "schema routeproof.lock/9"),
    ],
)
def test_a_broken_lock_is_refused(tmp_path, text, says):
    path = tmp_path / "routeproof.lock"
    path.write_text(text)
    with pytest.raises(FormatError, match=says):
        read_lock(path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        write_lock(tmp_path / "none" / "routeproof.lock", lock())
