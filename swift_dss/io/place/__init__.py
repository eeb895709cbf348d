"""Where a device's files lie: begin them side by side, and look.

Holds groups of files on an HDD, and the arms of a drive.
In: a capacity folder and its files.
Never: a change of a file's bytes.
"""
