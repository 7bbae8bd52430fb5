"""The interpreter: the reference meaning of every op, in numpy and ml_dtypes."""
