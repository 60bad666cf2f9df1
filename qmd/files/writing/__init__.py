"""The one way in which files change: allowed by the policy, whole, with the old content kept."""
