"""What would have to be measured to catch the rows that are not caught."""

NEEDS = {
    "shared_uniform": "more trials: the bias of this bug is small where draft and "
    "target agree well; some 5,000 answers to few prompts, compared word by word",
    "seed_ignored": "the same request with the same seed twice on the candidate: exact "
    "speculation may differ from the baseline at equal seeds, so other texts prove "
    "nothing",
    "other_cases": "the share of the larger set of cases that both arms were sent; "
    "the parity gate asks for half of the smaller one",
}
