"""Measures the quality of searches: runs each system on judged questions and computes metrics."""
