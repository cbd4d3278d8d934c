"""What all services share: errors, deadlines, settings, lifecycle, telemetry, gRPC plumbing."""
