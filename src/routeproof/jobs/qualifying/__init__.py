"""What stands around the sending: routes up, checked, probed, written down."""
