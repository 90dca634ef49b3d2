"""Figures of the chapters, and the tables that they print of stored results: one module a chapter.

A function draws of what it is given, so that a folded cell of a chapter says what is drawn and not how.
"""
