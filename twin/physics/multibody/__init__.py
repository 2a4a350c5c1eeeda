"""Tree of bodies, recursions over the tree, and the compilation of these recursions to kernels."""
