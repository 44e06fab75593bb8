"""Figures drawn on the server as SVG and coloured by the style sheet."""
