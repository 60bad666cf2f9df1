"""
Run functions in separate processes, within limits of CPU time and memory.

Untrusted files are read there: an endless loop inside a regular expression, a crash of a C library
or a read that blocks costs one file, and never stops the process that indexes or serves.
"""
