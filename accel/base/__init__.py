"""What knows nothing of machines: arguments, errors, files."""
