"""Custom calls of cuBLAS, cuDNN, cuSOLVER and CUB: made from instructions, and written out as instructions again."""
