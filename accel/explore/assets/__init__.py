"""Body, style sheet and script of the page of an exploration."""
