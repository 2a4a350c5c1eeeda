"""The robot as every computation sees it: tree, limits, couplings, loops; calls of its kernels."""
