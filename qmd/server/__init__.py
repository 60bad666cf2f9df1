"""MCP faces over KnowledgeBase."""
