"""The schema's history: each file in ``versions`` takes the database one step on."""
