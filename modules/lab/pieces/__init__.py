"""The pieces that a lab is put together from. Each is made once, and cached by the hash of its recipe."""
