"""What editors ask about texts of modules: documents that follow edits, and the answers of a language server."""
