-- +goose Up
-- Processes remember users, credentials and entries. A change of these rows, which are changed
-- seldom, is told to the others when it is committed.
-- +goose StatementBegin
CREATE FUNCTION tell_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('artel_changes_' || md5(TG_TABLE_SCHEMA), TG_TABLE_NAME || ' ' || CASE WHEN TG_OP = 'DELETE' THEN old.id ELSE new.id END || ' ' || current_setting('application_name'));
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tell_user AFTER INSERT OR UPDATE OR DELETE ON users FOR EACH ROW EXECUTE FUNCTION tell_change();
CREATE TRIGGER tell_session AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION tell_change();
CREATE TRIGGER tell_token AFTER DELETE ON tokens FOR EACH ROW EXECUTE FUNCTION tell_change();
CREATE TRIGGER tell_key_gone AFTER DELETE ON gateway_keys FOR EACH ROW EXECUTE FUNCTION tell_change();
CREATE TRIGGER tell_key AFTER UPDATE ON gateway_keys FOR EACH ROW WHEN (new.used_at IS NOT DISTINCT FROM old.used_at) EXECUTE FUNCTION tell_change();
CREATE TRIGGER tell_entry AFTER INSERT OR UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION tell_change();
