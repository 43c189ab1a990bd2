// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// TestOrderOfSearch: a search has the best first, and the newest where that is
// asked for; the list itself has the newest.
func TestOrderOfSearch(t *testing.T) {
	b := newBench(t, "")
	titled := b.object(b.do(http.MethodPost, "/conversations", `{"title":"The needle"}`), http.StatusCreated)["id"].(string)
	said := b.conversation()
	b.answers(said, map[string]any{"text": "Where is it?\nThe needle."})
	for query, want := range map[string][]string{
		"?search=needle": {titled, said}, "?search=needle&order=best": {titled, said}, "?search=needle&order=newest": {said, titled},
		"": {said, titled}, "?order=best": {said, titled},
	} {
		var list httpapi.List[artel.Conversation]
		if err := json.Unmarshal(b.do(http.MethodGet, "/conversations"+query, nil).body, &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range list.Items {
			got = append(got, string(c.ID))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", query, got, want)
		}
	}
}
