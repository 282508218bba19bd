"""Attention kernels by name: softmax, window, linear; feature maps; the multi-head layer around them."""
