-- +goose Up
-- The schema that a program has to know at least to use the database. A migration that only adds
-- leaves it; one that takes something away sets it to its own number.
CREATE TABLE schema_oldest (number BIGINT NOT NULL);
INSERT INTO schema_oldest (number) VALUES (4);
