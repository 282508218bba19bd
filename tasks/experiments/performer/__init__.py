"""Performers with and without RoPE: tables and figures of the comparison (arXiv 2104.09864, section 4.4)."""
