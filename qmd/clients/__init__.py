"""
Adds qmd to the configuration of AI clients, and takes it out again.

`table` says where each client has its configuration and how an entry looks there; `jsonc` and
`toml_text` change the text of a file and leave the rest as it is; `install` plans and writes.
"""
