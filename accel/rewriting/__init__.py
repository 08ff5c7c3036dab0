"""Graph rewriting: rules as data, and searches over the graphs that they make."""
