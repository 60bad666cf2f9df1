"""What qmd asks of the operating system: processes, sockets and paths."""
