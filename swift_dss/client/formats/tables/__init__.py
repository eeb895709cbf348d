"""Formats of tables: Parquet, ORC, Arrow.

Holds one file a format: its footer, its indexes, columns that are chosen.
In: a reader of the file.
Never: values of a table.
"""
