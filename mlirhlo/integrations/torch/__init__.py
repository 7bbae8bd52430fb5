"""PyTorch: programs exported as StableHLO, loaded and run here without PyTorch."""
