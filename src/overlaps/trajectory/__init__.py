"""The three scales and what comes out of them: trajectories with their times and citations, and their entries as columns of points."""
