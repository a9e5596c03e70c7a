"""What is learned, by what network, from where."""
