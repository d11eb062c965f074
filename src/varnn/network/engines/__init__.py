"""Windows + weights -> predictions (scoring), or a loss and its gradient (training engines).

``reference`` is written to be read and is the truth the others are tested against.
"""
