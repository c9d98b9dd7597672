"""Adapters of the store port, one package per database."""
