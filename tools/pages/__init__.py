"""Generated pages: one module each, `page(root)` gives the whole text."""
