"""Pure rules of the proxy: when to try again, what a call costs."""
