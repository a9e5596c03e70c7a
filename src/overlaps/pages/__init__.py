"""Pages for a browser: a report to send to somebody (`report`), and a page with sliders (`app`)."""
