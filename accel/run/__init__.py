"""Programs as users handle them."""
