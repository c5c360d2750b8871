"""What builds the documentation site beside MkDocs: the reference, and the check of links."""
