"""Members + a GPU -> trained members: one launch trains all members of one shape from first to last epoch.

``job`` is what a member learns from, as arrays; ``_nvrtc`` compiles ``train.cu`` for one shape, ``_driver``
loads and launches it, ``_layout`` is what both sides know of memory, ``launch`` trains jobs of one shape;
``limits`` says what is handled, and ``training`` is the way in.
"""
