"""Search for the commit that introduced a regression."""
