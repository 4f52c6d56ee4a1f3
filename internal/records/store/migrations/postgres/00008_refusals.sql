-- +goose Up

-- When a gate refused an attempt; NULL where it denied one that ended otherwise. Refusals are counted by gate on every
-- overview, and so without looking at the attempts.
ALTER TABLE attempt_gates ADD COLUMN refused_us BIGINT;
UPDATE attempt_gates SET refused_us = (SELECT a.time_us FROM attempts a WHERE a.seq = attempt_gates.seq AND a.outcome = 'refused');
CREATE INDEX attempt_gates_refused ON attempt_gates (refused_us, gate) WHERE refused_us IS NOT NULL;
