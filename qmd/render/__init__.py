"""Renders the Markdown of a document as HTML that is safe to show in a browser."""
