"""The parts of Tinderbox. Arrows point one way: roles → operations, facts → fleet → catalog → spec."""
