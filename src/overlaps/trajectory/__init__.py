"""What came out: trajectories with their times and citations, and their entries as columns of points."""
