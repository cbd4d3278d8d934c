"""Work after a reply, in a bounded queue of its own: shadow runs and late answers."""
