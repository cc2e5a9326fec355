"""Everything that puts Memlane on machines: the local stack, the image, the demo."""
