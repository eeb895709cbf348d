"""The all-in-one cluster: a whole Swift with classes on one machine."""
