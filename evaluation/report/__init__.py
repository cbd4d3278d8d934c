"""One page for people: what was routed, what it cost, what the curves say."""
