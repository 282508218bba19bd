"""Many documents: files cut into parts, which processes of one machine or of a Ray cluster turn into finished files."""
