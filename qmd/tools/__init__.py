"""Each tool once: its name, arguments, texts and handler on KnowledgeBase."""
