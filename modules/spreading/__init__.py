"""Who fetches a model from outside, who gives it and who takes it. Pure."""
