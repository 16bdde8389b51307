"""Draw the figures of the book from stored results."""
