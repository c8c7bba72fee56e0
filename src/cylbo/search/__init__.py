"""From a posterior to the next point; nothing here knows files or trials."""
