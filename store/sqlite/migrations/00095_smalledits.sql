-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Changes of at most 4 KB do not count as stored, so that a small edit writes no other
-- row than its own. Edits and versions are triggered by larger ones, and by texts.
DROP TRIGGER stored_edit;
DROP TRIGGER stored_edit_changed;
DROP TRIGGER stored_edit_gone;
DROP TRIGGER stored_version;
DROP TRIGGER stored_version_changed;
DROP TRIGGER stored_version_gone;

-- +goose StatementBegin
CREATE TRIGGER stored_edit AFTER INSERT ON edits WHEN new.text IS NOT NULL OR octet_length(new.changes) > 4096 BEGIN
    INSERT INTO stored (owner, bytes) VALUES (new.owner, coalesce(octet_length(new.text), 0) + iif(octet_length(new.changes) > 4096, octet_length(new.changes), 0))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_edit_changed AFTER UPDATE OF text, changes ON edits BEGIN
    UPDATE stored SET bytes = bytes + coalesce(octet_length(new.text), 0) + iif(octet_length(new.changes) > 4096, octet_length(new.changes), 0)
        - coalesce(octet_length(old.text), 0) - iif(octet_length(old.changes) > 4096, octet_length(old.changes), 0) WHERE owner = new.owner;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_edit_gone AFTER DELETE ON edits WHEN old.text IS NOT NULL OR octet_length(old.changes) > 4096 BEGIN
    UPDATE stored SET bytes = bytes - coalesce(octet_length(old.text), 0) - iif(octet_length(old.changes) > 4096, octet_length(old.changes), 0) WHERE owner = old.owner;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_version AFTER INSERT ON versions WHEN new.text IS NOT NULL OR octet_length(new.changes) > 4096 BEGIN
    INSERT INTO stored (owner, bytes) VALUES (new.owner, coalesce(octet_length(new.text), 0) + iif(octet_length(new.changes) > 4096, octet_length(new.changes), 0))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_version_changed AFTER UPDATE OF text, changes ON versions BEGIN
    UPDATE stored SET bytes = bytes + coalesce(octet_length(new.text), 0) + iif(octet_length(new.changes) > 4096, octet_length(new.changes), 0)
        - coalesce(octet_length(old.text), 0) - iif(octet_length(old.changes) > 4096, octet_length(old.changes), 0) WHERE owner = new.owner;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_version_gone AFTER DELETE ON versions WHEN old.text IS NOT NULL OR octet_length(old.changes) > 4096 BEGIN
    UPDATE stored SET bytes = bytes - coalesce(octet_length(old.text), 0) - iif(octet_length(old.changes) > 4096, octet_length(old.changes), 0) WHERE owner = old.owner;
END;
-- +goose StatementEnd

DELETE FROM stored;
INSERT INTO stored (owner, bytes)
SELECT owner, sum(bytes) FROM (
    SELECT owner, size AS bytes FROM stored_blobs
    UNION ALL SELECT owner, coalesce(octet_length(text), 0) + iif(octet_length(changes) > 4096, octet_length(changes), 0) FROM versions
    UNION ALL SELECT owner, coalesce(octet_length(text), 0) + iif(octet_length(changes) > 4096, octet_length(changes), 0) FROM edits
) GROUP BY owner;
