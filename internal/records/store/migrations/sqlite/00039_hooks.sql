-- +goose Up

-- Alerts for which a hook of the policy has started a session, so that the same one starts no second.
CREATE TABLE hook_alerts (
    hook        TEXT NOT NULL,
    fingerprint TEXT NOT NULL, -- its SHA-256
    session     TEXT NOT NULL,
    started_us  INTEGER NOT NULL,
    PRIMARY KEY (hook, fingerprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX hook_alerts_by_time ON hook_alerts (hook, started_us);
