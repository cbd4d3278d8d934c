"""gRPC plumbing: how calls come in, how calls go out, how a process lives."""
