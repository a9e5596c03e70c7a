"""Saad and Solla 1995: on-line learning in soft committee machines, isotropic inputs."""
