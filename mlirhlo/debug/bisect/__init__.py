"""Which pass, rule, rewrite and instruction first makes a module compute something else."""
