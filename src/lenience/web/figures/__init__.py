"""The dashboard's figures, drawn on the server as SVG: the browser's style sheet gives them their colours, so they
follow the dark mode, print well, and need no script."""
