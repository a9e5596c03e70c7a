"""What people look at: pictures of trajectories and comparisons (`curves`), of sweeps (`grid`), to hover over
(`interactive`), in colours that all readers can distinguish (`palette`)."""
