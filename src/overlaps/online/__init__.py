"""One-pass training at the three scales, macro, meso and micro, and what they share."""
