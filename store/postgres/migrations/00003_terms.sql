-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- How often the lease of a run has had another holder: who had an earlier term writes nothing any more.
ALTER TABLE runs ADD COLUMN term BIGINT NOT NULL DEFAULT 0;
