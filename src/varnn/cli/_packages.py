"""Optional packages of a command, asked for before its work begins: not after the minutes that it takes."""

from varnn.errors import Need, require_all


def ask_for(
    *,
    tables: bool = False,
    training: bool = False,
    boosting: bool = False,
    tuning: bool = False,
    page: bool = False,
    cluster: bool = False,
    service: bool = False,
    mqtt: bool = False,
) -> None:
    """Import what a command will need, or say how to install all that is not there.

    Examples
    --------
    >>> ask_for(tables=True, training=True)
    """
    needs = (
        (tables, Need("pyarrow", "files", "reading and writing tables")),
        (training, Need("torch", "train", "training")),
        (training, Need("scipy", "train", "training")),
        (boosting, Need("lightgbm", "baselines", "experts=('boosting',)")),
        (tuning, Need("optuna", "tune", "tuning")),
        (page, Need("matplotlib", "plots", "a report with figures")),
        (cluster, Need("ray", "ray", "running on a cluster")),
        (service, Need("starlette", "serve", "a live service")),
        (service, Need("uvicorn", "serve", "a live service")),
        (mqtt, Need("paho.mqtt.client", "mqtt", "speaking MQTT")),
    )
    require_all(need for is_needed, need in needs if is_needed)
