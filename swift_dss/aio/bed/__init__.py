"""A cluster of many nodes on one machine; :class:`bed.Bed` is it."""
