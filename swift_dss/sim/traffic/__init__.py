"""What passes between clients, proxies, daemons of Swift and nodes."""
