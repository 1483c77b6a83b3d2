"""Loads, metrics and trials."""
