"""The command line: each command parses its arguments, calls the knowledge base and prints."""
