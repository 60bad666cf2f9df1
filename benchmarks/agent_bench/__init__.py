"""Measures the agent on questions whose answers are known."""
