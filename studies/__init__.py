"""Published experiments, measured again, and their figures compared with ours."""
