"""Images of disks: qcow2 and raw, partitions, file systems.

Holds one file a format: tables of an image, metadata of a file system.
In: a reader of the image, or of a disk or partition in it.
Never: the data of a file in the image.
"""
