"""Read what a user passes: columns of any kind, and tables from files."""
