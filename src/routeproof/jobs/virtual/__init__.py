"""A whole run against simulated routes, in virtual time."""
