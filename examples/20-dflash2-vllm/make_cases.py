"""Write the cases of the two slices a DFlash draft needs: thinking, and long context.

    python examples/20-dflash2-vllm/make_cases.py

Every answer is known, and a seed makes the files the same each time. They stand in for
your own traffic, which is what you should measure on.
"""

import json
import random
from pathlib import Path

SEED = 20261130
COUNT = 60
RECORDS = 420
"""Lines of a long prompt, about 6,000 tokens: three times the drafter's window."""

FIRST = "amber birch cedar delta ember flint grove heath inlet jade".split()
SECOND = "kiln lark maple north ochre pearl quartz ridge slate tarn".split()


def thinking(number: int, draw: random.Random) -> dict:
    """A small chain of sums that is easier with a thought before the answer."""
    boxes, each = draw.randint(3, 12), draw.randint(4, 25)
    sold, bought = draw.randint(2, 11), draw.randint(5, 40)
    question = (
        f"A shop has {boxes} boxes with {each} lamps in each. It sells {sold} lamps, "
        f"then buys {bought} more, then sells half of all its lamps (rounded down). "
        "How many lamps are left? End with the number alone."
    )
    stock = boxes * each - sold + bought
    return {
        "id": f"thinking-{number:03}",
        "class": "thinking",
        "messages": [{"role": "user", "content": question}],
        "tags": {"thinking": "on"},
        "parameters": {
            "max_tokens": 1024,
            "chat_template_kwargs": {"enable_thinking": True},
        },
        "reference": stock - stock // 2,
        "scorers": ["numeric"],
    }


def past_the_window(number: int, draw: random.Random) -> dict:
    """One line to find in a long list, always before the drafter's window."""
    names = [f"{a}-{b}-{n}" for a in FIRST for b in SECOND for n in range(1, 6)]
    shown = draw.sample(names, RECORDS)
    codes = {name: str(draw.randint(10_000, 99_999)) for name in shown}
    wanted = draw.choice(shown[: RECORDS // 3])
    listing = "\n".join(
        f"store {name} has the door code {codes[name]}" for name in shown
    )
    question = f"{listing}\n\nWhat is the door code of store {wanted}? Only the code."
    return {
        "id": f"past_the_window-{number:03}",
        "class": "past_the_window",
        "messages": [{"role": "user", "content": question}],
        "tags": {"prompt": "long"},
        "parameters": {"max_tokens": 32},
        "reference": [codes[wanted]],
        "scorers": ["contains"],
    }


def main() -> None:
    """Write ``cases/thinking.jsonl`` and ``cases/past_the_window.jsonl``."""
    folder = Path(__file__).parent / "cases"
    folder.mkdir(exist_ok=True)
    for make in (thinking, past_the_window):
        draw = random.Random(SEED)
        lines = [json.dumps(make(i + 1, draw)) for i in range(COUNT)]
        (folder / f"{make.__name__}.jsonl").write_text("\n".join(lines) + "\n")
        print(f"{folder / make.__name__}.jsonl: {COUNT} cases")


if __name__ == "__main__":
    main()
