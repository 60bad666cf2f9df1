"""The graph of documents: links, tags, what changed and what is similar."""
