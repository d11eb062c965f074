"""The live service under load and in rough use: killed, filled, and asked as fast as it can answer."""
