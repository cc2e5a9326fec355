"""Rules of the graph: names, entity resolution, and the plan of the changes of an event."""
