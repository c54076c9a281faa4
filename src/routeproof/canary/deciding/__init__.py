"""The state of a canary: where it is kept, who changes it, how long it holds."""
