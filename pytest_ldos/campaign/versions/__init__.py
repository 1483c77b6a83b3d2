"""Versions to measure: checkout, environment, build, and storage."""
