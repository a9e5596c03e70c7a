"""What to expect of a training, and how best to do it, before it is done: forecasts and schedules."""
