"""Read recipes of other projects into fleet files. Pure: nothing of a recipe is ever run."""
