import msgspec
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_cases import HOSTILE, a_judgement, flips

from routeproof.reports import markdown, markup


def html_of(text):
    return MarkdownIt("commonmark", {"html": False}).enable("table").render(text)


def test_a_pull_request_sees_verdict_gates_and_changes():
    text = markdown.render(a_judgement(), report="https://ci.example/report.html")
    assert text.startswith("## ❌ routeproof: AVOID\n")
    assert "| Correctness | failed |" in text
    assert "| kv\\_cache | bf16 | fp8\\_e4m3 | lossy |" in text
    assert "[full report](<https://ci.example/report.html>)" in text


def test_hostile_output_stays_inside_its_fence():
    text = markdown.render(a_judgement())
    inside = text[text.index("hostile-001") :]
    assert f"```text\n{HOSTILE}\n```" in inside


def test_a_fence_in_an_answer_gets_a_longer_fence():
    flip = msgspec.structs.replace(
        flips(1)[0], baseline_text="```\n# not a heading\n```"
    )
    judgement = a_judgement()
    quality = msgspec.structs.replace(judgement.evidence.quality, flips=(flip,))
    evidence = msgspec.structs.replace(judgement.evidence, quality=quality)
    text = markdown.render(msgspec.structs.replace(judgement, evidence=evidence))
    assert "<h1>" not in html_of(text)


@given(st.text())
def test_words_from_outside_make_no_markup(text):
    made = MarkdownIt("commonmark").enable("table").parseInline(markup.words(text))
    kinds = {token.type for token in made[0].children or ()}
    assert kinds <= {"text", "text_special", "softbreak", "hardbreak"}


@given(st.text(alphabet="ab|\\`\n", max_size=20))
def test_a_cell_never_breaks_its_table(text):
    table = "\n".join(markup.table(("x", "y"), [(text, "end")]))
    rows = html_of(table).count("<tr>")
    assert rows == 2
    assert html_of(table).count("<td>") == 2
