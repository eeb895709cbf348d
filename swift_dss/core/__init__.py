"""Vocabulary, limits and errors. Imports nothing else of ours."""
