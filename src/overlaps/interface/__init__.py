"""What passes between a user and the library: values that are checked, specs, refusals, and the terminal."""
