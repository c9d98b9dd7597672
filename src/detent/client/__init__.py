"""The verbs of an engine over HTTP: every verb once, as a talk, and two drivers that hold it."""
