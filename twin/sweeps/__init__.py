"""Many runs of one experiment whose numbers vary: designs, verdicts, and what became of them."""
