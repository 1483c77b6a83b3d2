"""Baselines, verdicts and explanations."""
