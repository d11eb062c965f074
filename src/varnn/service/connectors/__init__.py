"""Other doors of a service, in the same process and off by default: MQTT, and lines of Influx."""

from varnn.service.connectors.settings import InfluxSettings, MqttSettings
from varnn.service.connectors.starting import start

__all__ = ["InfluxSettings", "MqttSettings", "start"]
