"""Trouble of every kind: bad streams, wild values, damaged files, kills."""
