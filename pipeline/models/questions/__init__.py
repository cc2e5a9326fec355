"""The questions a language model is asked: each answer's model and parser."""
