-- Settings that are changed while citeflow runs: docs/settings.md has every key. A row without a
-- value, or with a blank one, counts as unset. Safe to run again.
CREATE TABLE IF NOT EXISTS app_settings (
    key        text PRIMARY KEY,
    value      text,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Tells every process that follows the table. Processes that hear nothing look at intervals.
CREATE OR REPLACE FUNCTION citeflow_settings_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('citeflow_settings', '');
    RETURN NULL;
END;
$$;

CREATE OR REPLACE TRIGGER citeflow_settings_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON app_settings
    FOR EACH STATEMENT EXECUTE FUNCTION citeflow_settings_changed();
