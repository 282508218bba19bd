"""Work that is killed at random moments and taken up again must end as if nothing had happened."""
