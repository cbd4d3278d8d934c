"""Input from outside, damaged at random: `make fuzz` for long, pytest for a few seconds."""
