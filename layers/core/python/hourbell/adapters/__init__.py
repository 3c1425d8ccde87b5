"""The only code that touches AWS, the clock and randomness."""
