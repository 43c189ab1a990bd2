// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"
)

// Schedules lists the schedules of the user.
func (c *Client) Schedules(ctx context.Context) (out List[ScheduleView], err error) {
	return out, c.json(ctx, http.MethodGet, "/schedules", nil, &out)
}

func schedulePath(id string) string { return "/schedules/" + url.PathEscape(id) }

// MakeSchedule makes a schedule.
func (c *Client) MakeSchedule(ctx context.Context, n NewSchedule) (out ScheduleView, err error) {
	return out, c.json(ctx, http.MethodPost, "/schedules", n, &out)
}

// ChangeSchedule changes a schedule.
func (c *Client) ChangeSchedule(ctx context.Context, id string, change ScheduleChange) (out ScheduleView, err error) {
	return out, c.json(ctx, http.MethodPatch, schedulePath(id), change, &out)
}

// DeleteSchedule deletes a schedule.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	return c.json(ctx, http.MethodDelete, schedulePath(id), nil, nil)
}

// RunSchedule starts a run of a schedule now.
func (c *Client) RunSchedule(ctx context.Context, id string) (out StartView, err error) {
	return out, c.json(ctx, http.MethodPost, schedulePath(id)+"/run", nil, &out)
}

// Starts lists what a schedule has started, newest first.
func (c *Client) Starts(ctx context.Context, id, cursor string, limit int) (out List[StartView], err error) {
	return out, c.json(ctx, http.MethodGet, schedulePath(id)+"/starts?"+page(cursor, limit), nil, &out)
}
