"""Language: the terms of a text, dates, speakers and the equality of texts."""
