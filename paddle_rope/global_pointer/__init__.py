"""GlobalPointer: heads, losses, decoding. Decoding needs no paddle."""
