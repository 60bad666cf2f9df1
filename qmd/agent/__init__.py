"""
The agent: a language model that answers questions and may call the tools of the server.

`parser` finds the tool calls in the model's answers, `executor` checks and runs them, `prompt`
describes the tools to the model, and `loop` repeats this until an answer calls no tool. Then
`citations` compares what the answer cites with what the model has read.
"""
