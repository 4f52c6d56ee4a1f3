-- +goose Up

-- Alerts for which a hook of the policy has started a session, so that the same one starts no second.
CREATE TABLE hook_alerts (
    hook        TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL, -- its SHA-256
    session     TEXT COLLATE "C" NOT NULL,
    started_us  BIGINT NOT NULL,
    PRIMARY KEY (hook, fingerprint)
);
CREATE INDEX hook_alerts_by_time ON hook_alerts (hook, started_us);
