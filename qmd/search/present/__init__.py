"""From ranked candidates to the hits of a reply."""
