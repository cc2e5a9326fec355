-- Store the terms of messages that were accepted without: each string has the terms of one message.
UPDATE messages SET terms = string_to_array(cut.terms, ' ')
FROM unnest(
    CAST(:event_ids AS uuid[]), CAST(:ordinals AS smallint[]), CAST(:terms AS text[])
) AS cut (event_id, ordinal, terms)
JOIN events ON events.id = cut.event_id
WHERE messages.lane_id = events.lane_id AND messages.seq = events.seq
  AND messages.ordinal = cut.ordinal AND messages.terms IS NULL
