"""``dss://``: Swift with classes as a file system of fsspec.

Holds the file system, its files, its uploads, and smart_open's transport.
In: calls of Python libraries; options, the environment, clouds.yaml.
Never: a module of Swift, which this side of the wire does without.
"""
