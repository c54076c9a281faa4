"""What would have to be measured to catch the rows that are not caught."""

NEEDS = {
    "shared_uniform": "counts of each token after one and the same prefix: the bias "
    "goes by a token's place in the vocabulary, not by its probability, so it cancels "
    "over prompts; some 1,600 answers to eight prompts with log probabilities, the "
    "counts held against the baseline's distribution place by place",
}
