"""A model as a live service: messages in over HTTP, MQTT or lines; durable answers and a dashboard out."""

from varnn.service.client import Client
from varnn.service.service import Service

__all__ = ["Client", "Service"]
