"""Results of other tools, kept with the definitions those tools use."""
