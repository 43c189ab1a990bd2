-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- What each owner stores: the blobs of versions, edits and files, each once, and the
-- texts and changes of versions and edits. Triggers keep both tables, so that every
-- way to write or remove a row counts. stored.go computes the same from the rows.
CREATE TABLE stored (
    owner TEXT    NOT NULL PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE stored_blobs (
    owner  TEXT    NOT NULL,
    digest TEXT    NOT NULL,
    uses   INTEGER NOT NULL, -- rows that hold the digest
    size   INTEGER NOT NULL, -- bytes
    PRIMARY KEY (owner, digest)
) STRICT, WITHOUT ROWID;

INSERT INTO stored_blobs (owner, digest, uses, size)
SELECT owner, digest, count(*), max(size) FROM (
    SELECT owner, digest, coalesce(iif(json_valid(media), json_extract(media, '$.size'), 0), 0) AS size FROM versions WHERE in_blob = 1
    UNION ALL SELECT owner, digest, coalesce(iif(json_valid(media), json_extract(media, '$.size'), 0), 0) FROM edits WHERE in_blob = 1
    UNION ALL SELECT owner, digest, coalesce(iif(json_valid(info), json_extract(info, '$.size'), 0), 0) FROM files
) GROUP BY owner, digest;
INSERT INTO stored (owner, bytes)
SELECT owner, sum(bytes) FROM (
    SELECT owner, size AS bytes FROM stored_blobs
    UNION ALL SELECT owner, coalesce(octet_length(text), 0) + coalesce(octet_length(changes), 0) FROM versions
    UNION ALL SELECT owner, coalesce(octet_length(text), 0) + coalesce(octet_length(changes), 0) FROM edits
) GROUP BY owner;

-- +goose StatementBegin
CREATE TRIGGER stored_blob_first AFTER INSERT ON stored_blobs BEGIN
    INSERT INTO stored (owner, bytes) VALUES (new.owner, new.size) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_blob_last AFTER UPDATE OF uses ON stored_blobs WHEN new.uses = 0 BEGIN
    DELETE FROM stored_blobs WHERE owner = new.owner AND digest = new.digest;
    UPDATE stored SET bytes = bytes - new.size WHERE owner = new.owner;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER stored_edit AFTER INSERT ON edits WHEN new.text IS NOT NULL OR new.changes IS NOT NULL BEGIN
    INSERT INTO stored (owner, bytes) VALUES (new.owner, coalesce(octet_length(new.text), 0) + coalesce(octet_length(new.changes), 0))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_edit_changed AFTER UPDATE OF text, changes ON edits BEGIN
    UPDATE stored SET bytes = bytes + coalesce(octet_length(new.text), 0) + coalesce(octet_length(new.changes), 0)
        - coalesce(octet_length(old.text), 0) - coalesce(octet_length(old.changes), 0) WHERE owner = new.owner;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_edit_gone AFTER DELETE ON edits WHEN old.text IS NOT NULL OR old.changes IS NOT NULL BEGIN
    UPDATE stored SET bytes = bytes - coalesce(octet_length(old.text), 0) - coalesce(octet_length(old.changes), 0) WHERE owner = old.owner;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_edit_blob AFTER INSERT ON edits WHEN new.in_blob = 1 BEGIN
    INSERT INTO stored_blobs (owner, digest, uses, size) VALUES (new.owner, new.digest, 1, coalesce(json_extract(new.media, '$.size'), 0))
        ON CONFLICT (owner, digest) DO UPDATE SET uses = uses + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_edit_blob_gone AFTER DELETE ON edits WHEN old.in_blob = 1 BEGIN
    UPDATE stored_blobs SET uses = uses - 1 WHERE owner = old.owner AND digest = old.digest;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER stored_edit_blob_dropped AFTER UPDATE OF in_blob ON edits WHEN old.in_blob = 1 AND new.in_blob = 0 BEGIN
    UPDATE stored_blobs SET uses = uses - 1 WHERE owner = old.owner AND digest = old.digest;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER stored_version AFTER INSERT ON versions WHEN new.text IS NOT NULL OR new.changes IS NOT NULL BEGIN
    INSERT INTO stored (owner, bytes) VALUES (new.owner, coalesce(octet_length(new.text), 0) + coalesce(octet_length(new.changes), 0))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_version_changed AFTER UPDATE OF text, changes ON versions BEGIN
    UPDATE stored SET bytes = bytes + coalesce(octet_length(new.text), 0) + coalesce(octet_length(new.changes), 0)
        - coalesce(octet_length(old.text), 0) - coalesce(octet_length(old.changes), 0) WHERE owner = new.owner;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_version_gone AFTER DELETE ON versions WHEN old.text IS NOT NULL OR old.changes IS NOT NULL BEGIN
    UPDATE stored SET bytes = bytes - coalesce(octet_length(old.text), 0) - coalesce(octet_length(old.changes), 0) WHERE owner = old.owner;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_version_blob AFTER INSERT ON versions WHEN new.in_blob = 1 BEGIN
    INSERT INTO stored_blobs (owner, digest, uses, size) VALUES (new.owner, new.digest, 1, coalesce(json_extract(new.media, '$.size'), 0))
        ON CONFLICT (owner, digest) DO UPDATE SET uses = uses + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_version_blob_gone AFTER DELETE ON versions WHEN old.in_blob = 1 BEGIN
    UPDATE stored_blobs SET uses = uses - 1 WHERE owner = old.owner AND digest = old.digest;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER stored_file AFTER INSERT ON files BEGIN
    INSERT INTO stored_blobs (owner, digest, uses, size) VALUES (new.owner, new.digest, 1, coalesce(json_extract(new.info, '$.size'), 0))
        ON CONFLICT (owner, digest) DO UPDATE SET uses = uses + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_file_gone AFTER DELETE ON files BEGIN
    UPDATE stored_blobs SET uses = uses - 1 WHERE owner = old.owner AND digest = old.digest;
END;
-- +goose StatementEnd
