"""What may be searched, and the way from user units to the coordinates of the model."""
