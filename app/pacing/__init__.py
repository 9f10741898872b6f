"""One pace for the whole fleet: who may fetch next from an origin, and when."""
