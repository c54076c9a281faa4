"""The proof file: what is compared, on which workload, by which tolerances.

Strict structs only; this room reads YAML and says clearly what is wrong with it.
"""
