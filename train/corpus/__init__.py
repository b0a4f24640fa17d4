"""The text of the demo model: everything it is taught, as generated conversations."""
