// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

func skillURL(name string) string { return "/skills/" + url.PathEscape(name) }

// versionQuery is the query of a version of a skill; 0: the current one.
func versionQuery(version int) string {
	if version == 0 {
		return ""
	}
	return "?version=" + strconv.Itoa(version)
}

// Skills lists the skills.
func (c *Client) Skills(ctx context.Context) (out List[SkillView], err error) {
	return out, c.json(ctx, http.MethodGet, "/skills", nil, &out)
}

// Skill reads a version of a skill; 0: the current one.
func (c *Client) Skill(ctx context.Context, name string, version int) (out SkillDetail, err error) {
	return out, c.json(ctx, http.MethodGet, skillURL(name)+versionQuery(version), nil, &out)
}

// ImportSkill imports a ZIP. offer makes agents use it.
func (c *Client) ImportSkill(ctx context.Context, zip io.Reader, offer bool) (out SkillImported, err error) {
	req, err := c.request(ctx, http.MethodPost, "/skills/import?offer="+strconv.FormatBool(offer), zip)
	if err != nil {
		return out, err
	}
	req.Header.Set("Content-Type", "application/zip")
	return out, c.do(req, &out)
}

// OfferSkill chooses the version that agents can open; 0: none.
func (c *Client) OfferSkill(ctx context.Context, name string, version int) (out SkillView, err error) {
	return out, c.json(ctx, http.MethodPatch, skillURL(name), SkillChange{version}, &out)
}

// SkillFile returns a file of a version of a skill; version 0 is the current one, and
// path "" is SKILL.md.
func (c *Client) SkillFile(ctx context.Context, name string, version int, path string) (Download, error) {
	return c.download(ctx, skillURL(name)+"/file?"+url.Values{"path": {path}, "version": {strconv.Itoa(version)}}.Encode())
}

// ExportSkill returns a version of a skill as a ZIP.
func (c *Client) ExportSkill(ctx context.Context, name string, version int) (Download, error) {
	return c.download(ctx, skillURL(name)+"/export"+versionQuery(version))
}

// DeleteSkill deletes a skill.
func (c *Client) DeleteSkill(ctx context.Context, name string) error {
	return c.json(ctx, http.MethodDelete, skillURL(name), nil, nil)
}
