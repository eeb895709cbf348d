"""The WSGI filter at the proxy: facts in, tags out."""
