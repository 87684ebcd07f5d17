"""Timings against peers: same objective, gaps measured by one judge, ratios in one run."""
