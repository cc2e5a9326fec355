"""Questions of two and three hops: facts with their relations, and the path that answers each."""
