"""Many passes over a fixed training set of labelled rows: training error, test error, and where overfitting begins."""
