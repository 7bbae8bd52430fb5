"""Order and lifetime: schedules, rematerialization, and what runs in parallel."""
