"""Language models: questions, answers, circuit breaker and recordings."""
