"""The bed's S3, and the door in front of it that counts and fails."""
