"""From the name of a document to the document."""
