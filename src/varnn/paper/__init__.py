"""The paper, reproduced: published -> plan -> jobs -> runner -> tables, causes, claims, errata -> output.

Every number of the paper is data (``published.json``), every number of ours is the result of a job
with a full configuration, and every verdict is computed from the two. ``check`` runs some jobs anew, and
``keras`` has the model as a Keras layer.
"""
