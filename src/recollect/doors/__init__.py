"""Ways in: parse, call a mind, print; no door knows how anything is stored."""
