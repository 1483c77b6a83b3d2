"""Reports and exports of values."""
