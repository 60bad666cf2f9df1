"""
Run functions in separate processes, within limits of CPU time and memory.

Untrusted files are parsed there. An endless loop in a regular expression, a crash of a C library
or a read that blocks costs one file, and never stops the process that indexes or serves.
"""
