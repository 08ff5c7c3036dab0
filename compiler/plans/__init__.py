"""Default schedules: plans, and the model that chooses among them."""
