"""A controlled task: only the relative position of two far tokens tells the label."""
