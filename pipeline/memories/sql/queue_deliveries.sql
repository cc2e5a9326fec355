-- Queue webhook deliveries for changes of memories by a user, from their newest history rows.
-- The body is the same as in finish_apply.sql, which does this for changes by a model.
INSERT INTO webhook_deliveries (id, webhook_id, project_id, lane_id, event_type, body)
SELECT gen_random_uuid(), w.id, h.project_id, m.lane_id, 'memory_' || lower(h.event),
       jsonb_strip_nulls(jsonb_build_object('event_details', jsonb_build_object(
           'id', h.memory_id, 'event', h.event,
           'data', jsonb_build_object(
               'memory', coalesce(h.new_text, h.old_text),
               'old_memory', CASE h.event WHEN 'UPDATE' THEN h.old_text END),
           'event_id', h.event_id, 'user_id', m.user_id, 'agent_id', m.agent_id,
           'app_id', m.app_id, 'run_id', m.run_id)))::text
FROM memories m
JOIN memory_history h ON h.memory_id = m.id AND h.version = m.version
JOIN webhooks w ON w.project_id = h.project_id AND w.is_active
WHERE m.id = ANY (CAST(:memory_ids AS uuid[])) AND 'memory_' || lower(h.event) = ANY (w.event_types)
-- As the foreign key does: a webhook that is deleted at the same time gets no delivery.
FOR KEY SHARE OF w
