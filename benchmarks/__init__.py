"""Speed and accuracy of the three scales, measured side by side: `make bench`, or `python -m benchmarks`."""
