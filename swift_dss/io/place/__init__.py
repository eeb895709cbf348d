"""Where a device's files lie: begin them side by side, and look."""
