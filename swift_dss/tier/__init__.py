"""The cache-tier daemon: mechanism only."""
