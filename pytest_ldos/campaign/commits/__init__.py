"""Search for the commit that brought a regression."""
