"""Whether this library is right and fast on a device, for the owner of one to find out."""
