"""The rules of the service: specifications, events, decisions, reasons. No database access."""
