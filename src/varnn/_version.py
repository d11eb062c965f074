"""The version of this library, which files, cards and services name; also where nothing was installed."""

VERSION = "0.2.0"
