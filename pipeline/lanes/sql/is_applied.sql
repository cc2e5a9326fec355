-- True for an event `e` whose effect is stored: an import stores its lines in its first stage.
EXISTS (
    SELECT FROM stage_runs r
    WHERE r.batch_id = e.batch_id
      AND r.stage = CASE e.event_type WHEN 'IMPORT' THEN 'extract' ELSE 'apply' END
)
