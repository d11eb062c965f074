"""A model as a live service: messages in over HTTP, MQTT or lines; durable answers and a dashboard out."""
