"""What the command lines share: configuration, device, output."""
