"""Where beliefs come from: one protocol (labels in, a belief for each cell out), one file per model."""
