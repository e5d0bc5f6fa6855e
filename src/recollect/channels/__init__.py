"""Ways of recalling: each channel is one file and one query, and proposes candidates in its own unit."""
