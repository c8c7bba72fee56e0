"""Runs in files: one SQLite file that goes on, and tables for people and other programs."""
