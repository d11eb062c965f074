"""The ``varnn`` command: one thin file per command, all named in `app`."""
