"""Is the search any good? Metrics, judgments, and a run of every retriever over them."""
