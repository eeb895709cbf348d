"""Formats of films, pictures and measurements: MP4, video, TIFF, HDF5.

Holds one file a format: its index, its first frame, its key frames.
In: a reader of the file.
Never: a decoded frame.
"""
