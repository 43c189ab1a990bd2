-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- What tools have left outside any run is looked for by its age.
CREATE INDEX versions_of_tools ON versions (created_at) WHERE source = 'tool_result' AND run = '';
