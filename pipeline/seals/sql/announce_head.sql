-- Queue a head of a project for its webhooks.
INSERT INTO webhook_deliveries (id, webhook_id, project_id, lane_id, event_type, body)
SELECT gen_random_uuid(), w.id, w.project_id, w.project_id, 'seal_head',
       CAST(jsonb_build_object('seal_head', CAST(:head AS jsonb)) AS text)
FROM webhooks w
WHERE w.project_id = CAST(:project_id AS uuid) AND w.is_active AND 'seal_head' = ANY (w.event_types)
-- As the foreign key does: a webhook that is deleted at the same time gets no delivery.
FOR KEY SHARE OF w
