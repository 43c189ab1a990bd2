-- +goose Up
-- What an owner stores is a sum that every version changes. As one row it kept all writers of an
-- owner waiting for each other until their commits. Now a change is a row of its own, and one in
-- fifty adds up those that others do not hold.
ALTER TABLE stored RENAME TO stored_sums;
CREATE TABLE stored_changes (
    owner TEXT COLLATE "C" NOT NULL,
    bytes BIGINT NOT NULL
);
CREATE INDEX stored_changes_by_owner ON stored_changes (owner);
CREATE VIEW stored AS
    SELECT owner, sum(bytes)::bigint AS bytes FROM (SELECT owner, bytes FROM stored_sums UNION ALL SELECT owner, bytes FROM stored_changes) AS every GROUP BY owner;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION add_stored(whose TEXT, more BIGINT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stored_changes (owner, bytes) VALUES (whose, more);
    IF random() < 0.02 AND pg_try_advisory_xact_lock(hashtextextended(current_schema() || '/stored/' || whose, 0)) THEN
        WITH taken AS (
            DELETE FROM stored_changes WHERE ctid = ANY (ARRAY(SELECT ctid FROM stored_changes WHERE owner = whose LIMIT 10000 FOR UPDATE SKIP LOCKED)) RETURNING bytes
        )
        INSERT INTO stored_sums (owner, bytes) SELECT whose, coalesce(sum(bytes), 0) FROM taken
            ON CONFLICT (owner) DO UPDATE SET bytes = stored_sums.bytes + excluded.bytes;
    END IF;
END $$;
-- +goose StatementEnd
