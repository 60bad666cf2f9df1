"""
The tools, each defined once: name, title, description, arguments, texts and handler.

A tool knows `KnowledgeBase` and nothing of a transport. A face (MCP today) parses the
arguments and runs the tool with `Tool.call`, and renders the `Reply`; where two transports word
a text differently, the `Dialect` says how.
"""
