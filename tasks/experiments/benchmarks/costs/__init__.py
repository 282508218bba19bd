"""What a model costs on paper: operations, bytes and memory against the length; and what a large corpus takes."""
