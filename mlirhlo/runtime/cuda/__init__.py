"""Programs for GPUs at run time: drivers, and what runs a plan's steps through one."""
