"""Use the operating system: processes, sockets, time and paths."""
