"""What programs have outside of kernels: arrays, devices, costs, random keys, and how calls are simulated."""
