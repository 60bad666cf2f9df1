"""
Adds qmd to the configuration of AI clients, and takes it out again.

`table` says where each client has its configuration and how an entry looks there; `texts` changes
the text of a file, JSON with comments or TOML, and leaves the rest as it is; `install` plans and
writes.
"""
