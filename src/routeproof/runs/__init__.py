"""Does the I/O: streaming client, schedule, interleaved arms, launch, telemetry."""
