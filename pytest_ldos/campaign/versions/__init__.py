"""Versions to measure: checked out, prepared or built, and kept."""
