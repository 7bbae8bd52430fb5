"""GPU code: kernels of the gpu dialect, their LLVM and PTX, and the devices they are for."""
