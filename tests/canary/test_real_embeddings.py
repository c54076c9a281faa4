"""The grader by embeddings on a real local model: do its scores make sense?"""

import asyncio

import pytest
from tasting_cases import a_copy

from routeproof.canary.samples.cleaning import Cleaner
from routeproof.canary.samples.spool import Sample
from routeproof.canary.tasting import graders
from routeproof.canary.tasting.asked_http import Endpoint
from routeproof.canary.tasting.graders import Exchange, embedding_grader
from routeproof.engines.adapters import adapter
from routeproof.engines.embedded import fetch_embedded
from routeproof.engines.launch import launch
from routeproof.proof.route import LaunchSpec

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PAIRS = [
    (
        "How do I boil an egg so that the yolk stays soft?",
        "Lower the egg into boiling water, wait six minutes and cool it under "
        "the tap; the yolk is still runny then.",
    ),
    (
        "What is the capital of Norway?",
        "The capital of Norway is Oslo, at the head of the Oslofjord.",
    ),
    (
        "Explain how photosynthesis works.",
        "Plants take in light with chlorophyll and use its energy to turn water "
        "and carbon dioxide into sugar and oxygen.",
    ),
    (
        "Which visa do I need to work in Canada for a year?",
        "Most people need a work permit; a working holiday visa is one way if "
        "you are under thirty-five.",
    ),
    (
        "Write a function in Python that reverses a list.",
        "def reverse(items): return items[::-1]",
    ),
    (
        "My bicycle chain keeps slipping. What can I do?",
        "Check the chain for wear and the cassette for worn teeth; a stretched "
        "chain slips under load and should be replaced.",
    ),
    (
        "Who wrote the opera The Magic Flute?",
        "Wolfgang Amadeus Mozart composed The Magic Flute; the libretto is by "
        "Emanuel Schikaneder.",
    ),
    (
        "How much sleep does a newborn need?",
        "A newborn sleeps some fourteen to seventeen hours a day, in short stretches.",
    ),
    (
        "What is the difference between a virus and a bacterium?",
        "Bacteria are living cells that multiply by themselves; viruses need a "
        "host cell and antibiotics do nothing against them.",
    ),
    (
        "How do I renew my passport?",
        "Fill in the form, bring a recent photograph and your old passport to "
        "the office and pay the fee.",
    ),
    (
        "Why is the sky blue?",
        "Air scatters short wavelengths of sunlight more than long ones, so "
        "blue light reaches us from everywhere.",
    ),
    (
        "Recommend a novel about the sea.",
        "Moby-Dick by Herman Melville: a whaling voyage and a captain who hunts "
        "a white whale.",
    ),
    (
        "How can I save electricity at home?",
        "Switch to LED lamps, turn devices off instead of leaving them on "
        "standby, and wash at lower temperatures.",
    ),
    (
        "What does a carburettor do?",
        "It mixes fuel with air in the right proportion before the mixture "
        "enters the engine.",
    ),
    (
        "How do I train a puppy to come when called?",
        "Call its name in a short distance, reward it at once with a treat, and "
        "lengthen the distance slowly.",
    ),
    (
        "What happened in Berlin in November 1989?",
        "The Berlin Wall was opened on the ninth of November 1989 and people "
        "crossed the border freely.",
    ),
    (
        "How do I make compost?",
        "Layer kitchen scraps with dry leaves, keep the heap moist and turn it "
        "every few weeks.",
    ),
    (
        "What is compound interest?",
        "Interest is added to the principal, so that later interest is earned "
        "on earlier interest too.",
    ),
    (
        "How do I get a red wine stain out of a carpet?",
        "Blot it, pour on some mineral water, cover it with salt and vacuum "
        "once it is dry.",
    ),
    (
        "Which muscles does rowing train?",
        "Rowing works the legs, the back and the arms, and the trunk which "
        "holds them together.",
    ),
]


def an_exchange(question, answer, arm):
    request = {"messages": [{"role": "user", "content": question}]}
    copy = a_copy(answer, arm=arm, request=request)
    record = copy.record(adapter("openai"), 0.0)
    sample = Sample(
        request_id="r", arm=arm, at_s=0.0, stratum="whole", record=record, signals={}
    )
    return Exchange(sample, copy.body)


async def bad_shares(folder, groups):
    """Share found unrelated in each group, by a model of 135M parameters."""
    found = fetch_embedded()
    command = [
        str(found.server), "-m", str(found.model), "--port", "{port}",
        "-c", "512", "-np", "1", "-t", "1", "--embeddings", "--pooling", "mean",
    ]  # fmt: skip
    spec = LaunchSpec(command=tuple(command))
    async with launch(spec, name="embeddings", log_path=folder / "log") as engine:
        grade = embedding_grader(Endpoint(engine.endpoint_url, {}), "m", Cleaner())
        shares = []
        for exchanges in groups:
            said = await asyncio.to_thread(grade, exchanges)
            assert not any(each.problem for each in said)
            shares.append(sum(bool(each.bad) for each in said) / len(said))
        return shares


def test_answers_to_other_questions_lie_further_away_than_right_ones(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(graders, "CALIBRATION", len(PAIRS))
    n = len(PAIRS)
    control = [an_exchange(q, a, "control") for q, a in PAIRS]
    right = [an_exchange(q, a, "canary") for q, a in PAIRS]
    wrong = [
        an_exchange(PAIRS[i][0], PAIRS[(i + shift) % n][1], "canary")
        for shift in (1, 7)
        for i in range(n)
    ]
    shares = asyncio.run(bad_shares(tmp_path, [control, right, wrong]))
    assert shares[:2] == [0.0, 1 / n]
    assert shares[2] > 0.5
