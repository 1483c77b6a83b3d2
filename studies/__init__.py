"""Published experiments, measured again, with their figures beside ours."""
