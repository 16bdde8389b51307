"""Every figure of the book, drawn from stored results."""
