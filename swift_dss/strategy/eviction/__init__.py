"""Which bytes leave a tier. One algorithm, one file."""
