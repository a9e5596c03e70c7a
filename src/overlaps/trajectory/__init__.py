"""The three scales, and what comes out: trajectories, with times and citations, and their entries as columns."""
