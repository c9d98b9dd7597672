"""Puts the parts together: settings to store, clock, writer, dispatcher, and the `Engine`."""
