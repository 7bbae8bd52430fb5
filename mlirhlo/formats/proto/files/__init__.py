"""Files and bytes of messages: which message a file holds, its wire format and frames, and where it is damaged."""
