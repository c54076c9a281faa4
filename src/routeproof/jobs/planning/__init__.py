"""What a proof needs and costs before anything is sent."""
