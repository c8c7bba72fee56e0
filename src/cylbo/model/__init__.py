"""From values at points to a posterior; nothing here knows trials, an acquisition or a search space."""
