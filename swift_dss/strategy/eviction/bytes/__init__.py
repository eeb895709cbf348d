"""Orders of eviction over bytes by class: how much each class gives."""
