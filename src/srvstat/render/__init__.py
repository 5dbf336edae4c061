"""Text for people, from answers and documents."""
