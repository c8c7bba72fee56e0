"""Trials and their record."""
