"""Default schedules: plans, and the model of the machine that chooses among them."""
