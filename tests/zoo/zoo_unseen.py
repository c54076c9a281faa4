"""What would have to be measured to catch the rows that are not caught."""

NEEDS = {
    "n_ignored": "the number of choices compared with `n`",
}
