"""Models behind protocols; heavy imports live here, and only when called."""
