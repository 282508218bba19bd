"""What knows a position in a language model: tables and figures of the comparison."""
