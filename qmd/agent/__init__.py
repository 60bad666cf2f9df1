"""
The agent: a language model that answers with the tools of the server.

`parser` finds the tool calls in what the model says, `executor` checks and runs them,
`prompt` tells the model of them, and `loop` goes on until the model has answered.
"""
