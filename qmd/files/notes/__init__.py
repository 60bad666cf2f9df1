"""Notes in a vault: what a path means, and reading, writing and listing."""
