"""What learns and what it lowers: networks (`architectures`), activations and losses, a file each."""
