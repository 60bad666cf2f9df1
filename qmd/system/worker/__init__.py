"""
Functions run by a process of its own, within limits of CPU time and memory, that may be ended.

What reads untrusted files runs there: a loop without end inside a regular expression, a crash
of a C library or a read that blocks costs a file, and never the process that asked.
"""
