"""Random modules against passes, platforms, printers and readers; what is found is reduced and told by cause."""
