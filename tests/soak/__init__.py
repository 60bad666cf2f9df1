"""A long run by hand: ``python -m tests.soak --minutes 20``."""
