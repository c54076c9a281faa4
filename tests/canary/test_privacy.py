"""What is kept of live traffic: little, clean, sealed, not for long, and erasable."""

import importlib.util
import json

import pytest
from canary_cases import SHORT, a_gateway, ask, run
from fakes.openai_server import json_reply
from tasting_cases import a_copy, a_taster, taste_all

from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway
from routeproof.canary.router import owner_digest
from routeproof.canary.samples.cleaning import cleaner_of
from routeproof.canary.samples.sealing import seal_from
from routeproof.canary.samples.spool import Spool
from routeproof.errors import ConfigError, StoredRunError
from routeproof.proof.canary import PrivacySpec

needs_cryptography = pytest.mark.skipif(
    importlib.util.find_spec("cryptography") is None, reason="needs cryptography"
)
WORDS = "the plum tree behind the mill"
KEY = {"CANARY_KEY": "a long secret"}


def files_of(folder):
    return b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())


def test_prompts_are_not_kept_unless_asked_for(tmp_path):
    request = {"messages": [{"role": "user", "content": WORDS}]}
    taster = a_taster(tmp_path)
    taste_all(taster, a_copy(request=request))
    assert taster.spool.latest()[0].prompt is None
    assert WORDS.encode() not in files_of(tmp_path)
    keeping = a_taster(tmp_path, keep_prompts=True)
    taste_all(keeping, a_copy(request_id="r2", request=request))
    assert keeping.spool.latest()[0].prompt == request["messages"]


def test_prompts_answers_tools_and_stop_words_are_redacted_before_they_are_kept(
    tmp_path,
):
    mail = "jane.doe@example.org"
    taster = a_taster(tmp_path, keep_prompts=True)
    request = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": mail}]}],
        "stop": [mail],
        "tools": [{"type": "function", "function": {"name": "f", "description": mail}}],
    }
    taste_all(taster, a_copy(f"write to {mail}", request=request))
    assert mail.encode() not in files_of(tmp_path)
    (kept,) = taster.spool.latest()
    assert kept.record.answer.text == "write to [email]"
    assert kept.request["stop"] == ["[email]"]


def test_own_patterns_and_hooks_run_after_the_built_in_ones():
    cleaner = cleaner_of(
        PrivacySpec(
            patterns={"ticket": r"TCK-\d+"}, hooks=("textwrap:dedent", "html:escape")
        )
    )
    assert cleaner.text("<TCK-77> of a@b.org") == "&lt;[ticket]&gt; of [email]"


@pytest.mark.parametrize(
    "privacy",
    [
        PrivacySpec(patterns={"x": "("}),
        PrivacySpec(patterns={"x": "a*"}),
        PrivacySpec(hooks=("nowhere.at_all:f",)),
        PrivacySpec(hooks=("textwrap:missing",)),
        PrivacySpec(hooks=("math:pi",)),
        PrivacySpec(hooks=("textwrap",)),
    ],
)
def test_a_pattern_or_hook_that_cannot_work_is_refused(privacy):
    with pytest.raises(ConfigError):
        cleaner_of(privacy)


def test_a_hook_that_gives_no_text_keeps_nothing(tmp_path):
    taster = a_taster(
        tmp_path, cleaner=cleaner_of(PrivacySpec(hooks=("builtins:len",)))
    )
    taste_all(taster, a_copy("a secret"))
    assert taster.spool.latest() == [] and taster.dropped["canary"] == 1


@needs_cryptography
def test_sealed_samples_cannot_be_read_from_the_disk_and_open_with_the_key(tmp_path):
    seal = seal_from("CANARY_KEY", KEY)
    taster = a_taster(tmp_path, spool=Spool(tmp_path / "s.db", seal=seal))
    taste_all(taster, a_copy(WORDS))
    assert WORDS.encode() not in files_of(tmp_path)
    taster.spool.close()
    again = Spool(tmp_path / "s.db", seal=seal_from("CANARY_KEY", KEY))
    assert again.latest()[0].record.answer.text == WORDS


@needs_cryptography
def test_another_key_or_none_opens_nothing_and_says_so(tmp_path):
    seal = seal_from("CANARY_KEY", KEY)
    taster = a_taster(tmp_path, spool=Spool(tmp_path / "s.db", seal=seal))
    taste_all(taster, a_copy(WORDS))
    taster.spool.close()
    other = Spool(tmp_path / "s.db", seal=seal_from("K", {"K": "another"}))
    with pytest.raises(StoredRunError, match="cannot be opened with this key"):
        other.latest()
    with pytest.raises(StoredRunError, match="cannot be read"):
        Spool(tmp_path / "s.db").latest()
    with pytest.raises(ConfigError, match="is not set"):
        seal_from("CANARY_KEY", {})


def test_what_is_older_than_the_retention_is_forgotten_by_the_gateway_itself(tmp_path):
    now = [1_000.0]
    file = tmp_path / "canary.yaml"
    routes = {"fast": "http://127.0.0.1:1", "trusted": "http://127.0.0.1:2"}
    more = "  privacy: {retention_s: 60}\n"
    file.write_text(SHORT.format(sample="5%", more=more, **routes))
    gateway = Gateway(load_canary(file), wall=lambda: now[0])
    taste_all(gateway.taster, a_copy(request_id="old-request"))
    now[0] = 1_050.0
    taste_all(gateway.taster, a_copy(request_id="new-request"))
    now[0] = 1_070.0
    gateway._forget_old()
    assert [s.request_id for s in gateway.taster.spool.latest()] == ["new-request"]


def test_erased_bytes_are_gone_from_the_files_and_not_only_from_the_table(tmp_path):
    taster = a_taster(tmp_path)
    taste_all(
        taster,
        a_copy("a quiet mill", request_id="hers", owner="jane"),
        a_copy("a loud mill", request_id="his", owner="john"),
    )
    assert b"a quiet mill" in files_of(tmp_path)
    assert taster.spool.erase("jane") == 1
    assert b"a quiet mill" not in files_of(tmp_path)
    assert b"a loud mill" in files_of(tmp_path)


@pytest.mark.slow
def test_everything_of_one_user_is_erased_by_key_and_nothing_of_others(tmp_path):
    choice = {"message": {"content": WORDS}, "finish_reason": "stop"}
    answer = json_reply({"id": "c", "choices": [choice]})
    more = (
        "  steps: [0.5]\n  privacy: {replay: true, replay_in_flight_max: -1,"
        " keep_prompts: true}\n"
    )

    async def go():
        async with a_gateway(tmp_path, trusted=answer, fast=answer, more=more) as stand:
            stand.gateway.command("start", actor="test")
            for user in ("jane", "john") * 6:
                body = {"messages": [], "user": user}
                await ask(stand.url, json.dumps(body).encode())
            stand.gateway.taster.stop()
            before = len(stand.gateway.taster.spool.latest())
            waiting = stand.gateway.side.replayer.waiting()
            erased = stand.gateway.erase("jane")
            return stand.gateway, before, waiting, erased

    gateway, before, waiting, erased = run(go())
    left = gateway.taster.spool.latest()
    assert erased == before // 2 + waiting // 2 > 0
    assert {s.owner for s in left} == {owner_digest("john")}
    assert b"jane" not in files_of(tmp_path)
