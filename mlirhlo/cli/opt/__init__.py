"""The parts of `hlo-opt`: its options, the stages of compilers, pages of passes, and what is printed while they run."""
