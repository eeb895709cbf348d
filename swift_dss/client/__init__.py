"""For client programs: make and read classified objects."""
