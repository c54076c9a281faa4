"""A judge model: asked blind, in both orders, and itself put to the test."""
