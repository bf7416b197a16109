"""The cycles: what runs every minute and every night."""
