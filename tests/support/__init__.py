"""Parts of tests, in rooms: a room has the name of what it supports."""
