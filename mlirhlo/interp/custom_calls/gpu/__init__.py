"""Custom calls of the libraries of GPUs: cuBLAS, cuDNN and CUB."""
