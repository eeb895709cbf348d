"""What a client program uses: make and read classed objects."""
