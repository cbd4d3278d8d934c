"""Published model weights: where they come from, how their files are checked."""
