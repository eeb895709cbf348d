"""The object server: tags, and the diskfile plug-ins."""
