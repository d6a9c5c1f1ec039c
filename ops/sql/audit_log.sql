-- Findings, copied from the topic audit.findings for those who look at them with SQL. The copy is
-- made by `python -m streams worker --app audit`; a finding that comes twice is stored once.
CREATE TABLE IF NOT EXISTS audit_log (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id   text NOT NULL UNIQUE,
    event_type text NOT NULL,
    source     text NOT NULL,
    severity   text NOT NULL,
    details    jsonb NOT NULL,
    timestamp  timestamptz NOT NULL
);

-- What is asked for most: the newest findings, of one kind.
CREATE INDEX IF NOT EXISTS audit_log_findings
    ON audit_log ((details ->> 'kind'), timestamp DESC) WHERE event_type = 'finding';
