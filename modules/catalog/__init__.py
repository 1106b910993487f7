"""Data that ships with the project, each entry with its source."""

from modules.catalog.catalog import Catalog
from modules.catalog.loader import CatalogError, load_catalog

__all__ = ["Catalog", "CatalogError", "load_catalog"]
