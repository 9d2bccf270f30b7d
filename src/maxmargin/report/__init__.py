"""Results for people: pictures that any browser shows, made without further packages."""
