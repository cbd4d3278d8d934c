"""What may leave: the type of cleared text, and the gate that alone makes it."""
