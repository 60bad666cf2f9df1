"""Where and how qmd changes what lies on the disk, for a tool that was asked to."""
