"""Topics in, citation-ready corpora out."""
