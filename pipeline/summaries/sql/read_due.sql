-- The state of a due summary: its scope, the settings of its project and the version before it.
SELECT s.project_id, s.version, s.tries, l.user_id, l.epoch, l.forgotten_seq AS after_seq, l.settled_seq,
       p.mode, p.budget, p.custom_instructions, p.includes, p.excludes, p.agent_custom_instructions,
       base.text AS previous, base.until_seq AS previous_seq
FROM summary_states s
JOIN lanes l ON l.id = s.lane_id
JOIN projects p ON p.id = s.project_id
LEFT JOIN LATERAL (
    SELECT b.text, b.until_seq FROM summaries b
    WHERE b.lane_id = s.lane_id AND b.after_seq = l.forgotten_seq
    ORDER BY b.version DESC
    LIMIT 1
) base ON true
WHERE s.lane_id = CAST(:lane_id AS uuid) AND s.due_at IS NOT NULL
