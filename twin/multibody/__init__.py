"""The tree of bodies, the recursions over it, and how they become compiled kernels."""
